-- Which steps were thrown away, and why?
SELECT attempt, step, count(*) AS ranks, any_value(lost_reason) AS why, sum(duration_ns) / 1e9 AS rank_s
FROM v_step
WHERE run_id = $run AND NOT kept
GROUP BY attempt, step
ORDER BY attempt, step
