-- The ledger by step: one row per attempt, step and category, all ranks together. Time outside steps is not here.
--   ns [ns]: Rank time
SELECT run_id, attempt, step, category, ns FROM d_ledger_step
