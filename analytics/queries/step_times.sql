-- Grain: slice of kept steps of one attempt, at most about $points in all. Percentiles are taken inside a step over its
-- ranks; over a slice the median step is shown, and the slowest.
WITH numbered AS (
    SELECT
        attempt, step, p50_ns, p95_ns, max_ns, max_rank,
        step // greatest(count(*) OVER () // $points, 1) AS slice
    FROM v_step_summary
    WHERE run_id = $run AND kept
)
SELECT
    attempt,
    min(step) AS step,
    median(p50_ns) / 1e9 AS p50_s,
    median(p95_ns) / 1e9 AS p95_s,
    max(max_ns) / 1e9 AS max_s,
    arg_max(max_rank, max_ns) AS max_rank
FROM numbered
GROUP BY attempt, slice
ORDER BY attempt, step
