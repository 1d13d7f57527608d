-- Start-up by phase over the ranks of an attempt that had the phase.
SELECT run_id, attempt, phase, ordinal, count(*) AS ranks,
       quantile_cont(duration_ns, 0.5) / 1e9 AS p50_s, quantile_cont(duration_ns, 0.95) / 1e9 AS p95_s,
       quantile_cont(duration_ns, 0.99) / 1e9 AS p99_s, max(duration_ns) / 1e9 AS max_s,
       arg_max(rank, duration_ns) AS max_rank
FROM d_init_rank WHERE run_id = $run_id GROUP BY ALL
