-- Grain: one step in $every of an attempt, and the last of each kept and lost stretch. Progress against time.
WITH numbered AS (
    SELECT
        attempt, step, begin_ns, end_ns, kept,
        row_number() OVER (PARTITION BY attempt ORDER BY step) AS place,
        lead(kept) OVER (PARTITION BY attempt ORDER BY step) AS next_kept,
        lag(kept) OVER (PARTITION BY attempt ORDER BY step) AS last_kept,
        count(*) OVER () AS steps
    FROM v_step_summary
    WHERE run_id = $run AND end_ns >= $t0 AND begin_ns <= $t1
)
SELECT attempt, step, begin_ns, end_ns, kept
FROM numbered
WHERE
    place % greatest(steps // $points, 1) = 0
    OR next_kept IS DISTINCT FROM kept
    OR last_kept IS DISTINCT FROM kept
ORDER BY attempt, step
