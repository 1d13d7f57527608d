-- One row per attempt and start-up phase, over the ranks that had it.
SELECT run_id, attempt, phase, ordinal, ranks, p50_s, p95_s, p99_s, max_s, max_rank FROM d_init_phase
