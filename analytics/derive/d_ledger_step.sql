-- The ledger by step: rank time of all ranks.
SELECT run_id, attempt, step, category, sum(end_ns - begin_ns)::BIGINT AS ns
FROM d_ledger_interval WHERE run_id = $run_id AND step IS NOT NULL GROUP BY ALL
