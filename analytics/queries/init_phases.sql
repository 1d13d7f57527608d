-- Grain: start-up phase of one attempt, in its usual order.
SELECT phase, ordinal, ranks, p50_s, p99_s, max_s, max_rank
FROM v_init_phase
WHERE run_id = $run AND attempt = $attempt
ORDER BY ordinal
