-- Which ranks are late most often?
SELECT max_rank AS rank, count(*) AS times_slowest, median(max_ns - p50_ns) / 1e6 AS median_excess_ms
FROM v_step_summary
WHERE run_id = $run
GROUP BY max_rank
ORDER BY times_slowest DESC
LIMIT 20
