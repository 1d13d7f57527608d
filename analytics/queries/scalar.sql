-- Grain: attempt and slice of steps, at most $points of each attempt. The mean over a slice, with its extremes.
WITH range_of AS (
    SELECT min(step) AS first_step, greatest((max(step) - min(step) + 1) // $points, 1) AS width
    FROM v_scalar
    WHERE run_id = $run AND name = $scalar
)
SELECT
    s.attempt,
    (r.first_step + (s.step - r.first_step) // r.width * r.width)::BIGINT AS step,
    avg(s.value) AS mean, min(s.value) AS low, max(s.value) AS high
FROM v_scalar AS s, range_of AS r
WHERE s.run_id = $run AND s.name = $scalar
GROUP BY ALL
ORDER BY s.attempt, step
