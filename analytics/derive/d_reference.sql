-- The reference step: median duration of kept steps at full strength, the first step of every process left out
-- (it warms up). A step's duration is the median over its ranks. Where no step qualifies, the nearest that do.
WITH planned AS (
    SELECT run_id, CASE WHEN f.has_lanes THEN -1 ELSE attempt END AS scope, count(DISTINCT rank) AS ranks
    FROM d_plan JOIN d_frame f USING (run_id) WHERE run_id = $run_id GROUP BY ALL
), judged AS (
    SELECT s.p50_ns, CASE WHEN s.ranks_first > 0 THEN 'first steps'
                          WHEN s.ranks_kept < p.ranks THEN 'below full strength' ELSE 'full strength' END AS basis
    FROM d_step_summary s
    JOIN d_frame f USING (run_id)
    JOIN planned p ON p.run_id = s.run_id AND p.scope = CASE WHEN f.has_lanes THEN -1 ELSE s.attempt END
    WHERE s.run_id = $run_id AND s.ranks_kept > 0 AND NOT s.is_open
)
SELECT $run_id AS run_id, median(p50_ns)::BIGINT AS reference_step_ns, count(*) AS steps, basis
FROM judged GROUP BY basis
ORDER BY CASE basis WHEN 'full strength' THEN 0 WHEN 'below full strength' THEN 1 ELSE 2 END LIMIT 1
