-- Arrivals in collectives of which every member's own row is stored, on the run's reference clock.
WITH member AS (
    SELECT run_id, attempt, rank, incarnation, pg, arg_max(ranks, created_ns) AS ranks
    FROM process_group WHERE ranks IS NOT NULL GROUP BY ALL
), arrived AS (
    SELECT c.run_id, c.attempt, c.rank, c.incarnation, p.lane, c.pg, c.seq, c.step, c.op,
           c.enqueue_ns - p.offset_ns AS arrival_ns,
           coalesce(c.end_ns - p.offset_ns, p.ended_ns) AS end_ns, c.is_async, c.source_id, m.ranks,
           -- Of asynchronous ones in a row (DDP's buckets), backward has compute to hide all but the last behind.
           coalesce(c.is_async, false) AND coalesce(lead(c.is_async) OVER (
               PARTITION BY c.run_id, c.attempt, c.rank, c.incarnation, c.step ORDER BY c.enqueue_ns, c.slot
           ), false) AS is_hidden
    FROM collective c
    JOIN d_process p USING (run_id, attempt, rank, incarnation)
    JOIN member m USING (run_id, attempt, rank, incarnation, pg)
    WHERE NOT coalesce(c.is_p2p, false)
)
SELECT run_id, attempt, rank, incarnation, lane, pg, seq, step, op, arrival_ns, end_ns, is_hidden,
       source_id, count(*) OVER w AS arrivals, max(arrival_ns) OVER w AS last_arrival_ns,
       quantile_disc(arrival_ns, 0.5) OVER w AS median_arrival_ns
FROM arrived
WINDOW w AS (PARTITION BY run_id, attempt, pg, seq, ranks)
QUALIFY arrivals = len(ranks) AND len(ranks) > 1
