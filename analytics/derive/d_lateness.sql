-- How late a rank comes to its groups' collectives: arrival against the group's median, and the wait that it imposes
-- on the others when it comes last: (last - second last) x others. From full rows where they exist; a roll-up gives
-- the first arrival of a step, which no earlier wait of that step has evened out.
WITH full_row AS (
    SELECT run_id, attempt, rank, incarnation, pg, 'collective' AS basis, arrival_ns,
           (arrival_ns - median_arrival_ns)::BIGINT AS late_ns, arrivals, last_arrival_ns,
           lead(arrival_ns) OVER w AS before_ns, row_number() OVER w AS from_last
    FROM s_arrival WHERE run_id = $run_id
    WINDOW w AS (PARTITION BY run_id, attempt, lane, pg, seq ORDER BY arrival_ns DESC, rank)
), rolled AS (
    SELECT c.run_id, c.attempt, c.rank, c.incarnation, c.pg, c.step, c.first_enqueue_ns - p.offset_ns AS arrival_ns
    FROM collective_rollup c JOIN d_process p USING (run_id, attempt, rank, incarnation)
    WHERE c.run_id = $run_id AND c.step BETWEEN $step_low AND $step_high
      AND NOT EXISTS (SELECT 1 FROM full_row f WHERE f.attempt = c.attempt AND f.pg = c.pg)
), met AS (
    SELECT attempt, pg, step, count(*) AS arrivals, quantile_disc(arrival_ns, 0.5) AS median_ns,
           max(arrival_ns, 2) AS latest, arg_max(rank, arrival_ns) AS last_rank
    FROM rolled GROUP BY ALL HAVING count(*) > 1
), rolled_row AS (
    SELECT r.run_id, r.attempt, r.rank, r.incarnation, r.pg, 'rollup' AS basis, r.arrival_ns - m.median_ns AS late_ns,
           m.arrivals, m.latest[1] AS last_arrival_ns, r.arrival_ns, r.rank = m.last_rank AS is_last,
           m.latest[1] - m.latest[2] AS gap_ns
    FROM rolled r JOIN met m USING (attempt, pg, step)
), arrived AS (
    SELECT run_id, attempt, rank, incarnation, pg, basis, late_ns, arrivals, last_arrival_ns - arrival_ns AS waited_ns,
           from_last = 1 AS is_last, arrival_ns - before_ns AS gap_ns
    FROM full_row
    UNION ALL
    SELECT run_id, attempt, rank, incarnation, pg, basis, late_ns, arrivals, last_arrival_ns - arrival_ns, is_last, gap_ns
    FROM rolled_row
)
SELECT run_id, attempt, rank, incarnation, pg, basis, count(*) AS arrivals,
       avg(late_ns)::BIGINT AS late_mean_ns, approx_quantile(late_ns, 0.5)::BIGINT AS late_p50_ns,
       approx_quantile(late_ns, 0.95)::BIGINT AS late_p95_ns, max(late_ns)::BIGINT AS late_max_ns,
       count(*) FILTER (WHERE is_last) AS last_arrivals,
       coalesce(sum(gap_ns * (arrivals - 1)) FILTER (WHERE is_last), 0)::BIGINT AS imposed_ns,
       sum(waited_ns)::BIGINT AS waited_ns
FROM arrived GROUP BY ALL
