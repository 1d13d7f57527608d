-- The time ledger: one row per process and category. A run's rows add up to all its planned rank time, exactly.
-- Time without a process counts for the attempt that follows. Sum by attempt, rank, host or replica_group at will.
--   ns [ns]: Rank time
SELECT run_id, attempt, rank, incarnation, host, replica_group, category, ns FROM d_ledger
