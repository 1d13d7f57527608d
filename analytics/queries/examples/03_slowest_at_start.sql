-- Which rank was slowest in each phase of start-up?
SELECT attempt, phase, p50_s, p99_s, max_s, max_rank
FROM v_init_phase
WHERE run_id = $run
ORDER BY attempt, ordinal
