-- How the clocks of hosts that met in collectives differ: one row per pair of hosts that shared a process group.
--   difference_ns: median of (end on host - end on lead): a collective ends everywhere at about the same moment
--   low_ns, high_ns: no clocks outside of this could have shown what was seen, as none can leave a synchronising
--     collective before the last one has come; null without such a collective
--   spread_low_ns, spread_high_ns: 5th and 95th percentile of the differences
--   slope: change of the difference per ns, least squares
WITH place AS (
    SELECT DISTINCT attempt, rank, incarnation, host FROM rank WHERE run_id = $run_id AND rank >= 0
),
seen AS (
    SELECT attempt, rank, incarnation, pg, seq, end_ns,
           CASE WHEN regexp_matches(op, 'all_?reduce|all_?gather|reduce_scatter|all_?to_?all|barrier')
                THEN enqueue_ns END AS enqueue_ns
    FROM collective
    WHERE run_id = $run_id AND state = 'completed' AND end_ns IS NOT NULL AND NOT coalesce(is_p2p, false)
    UNION ALL
    SELECT attempt, rank, incarnation, pg, last_seq, last_end_ns, NULL
    FROM collective_rollup
    WHERE run_id = $run_id AND last_end_ns IS NOT NULL
),
met AS (
    SELECT attempt, pg, seq, host, max(enqueue_ns) AS arrived_ns, min(end_ns) AS ended_ns
    FROM seen JOIN place USING (attempt, rank, incarnation)
    GROUP BY ALL
),
chosen AS (
    SELECT attempt, pg, seq, min(host) AS lead
    FROM met GROUP BY attempt, pg, seq HAVING count(*) > 1
    ORDER BY hash(attempt, pg, seq) LIMIT 20000
),
pair AS (
    SELECT lead, other.host, lead_met.ended_ns AS moment_ns, other.ended_ns - lead_met.ended_ns AS difference_ns,
           other.arrived_ns - lead_met.ended_ns AS low_ns, other.ended_ns - lead_met.arrived_ns AS high_ns
    FROM chosen
    JOIN met AS other USING (attempt, pg, seq)
    JOIN met AS lead_met ON lead_met.attempt = chosen.attempt AND lead_met.pg = chosen.pg
        AND lead_met.seq = chosen.seq AND lead_met.host = chosen.lead
    WHERE other.host <> lead
)
SELECT lead, host, count(*) AS meetings, median(difference_ns)::BIGINT AS difference_ns,
       max(low_ns) AS low_ns, min(high_ns) AS high_ns,
       quantile_cont(difference_ns, 0.05)::BIGINT AS spread_low_ns,
       quantile_cont(difference_ns, 0.95)::BIGINT AS spread_high_ns,
       regr_slope(difference_ns - first_difference_ns, moment_ns - first_ns) AS slope,
       max(moment_ns) - min(moment_ns) AS span_ns
FROM (SELECT *, min(moment_ns) OVER of_pair AS first_ns, min(difference_ns) OVER of_pair AS first_difference_ns
      FROM pair WINDOW of_pair AS (PARTITION BY lead, host))
GROUP BY lead, host
ORDER BY lead, host
