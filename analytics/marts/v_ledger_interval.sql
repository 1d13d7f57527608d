-- The time ledger, unsummed: one row per stretch of a rank's time in one category. Filter by run_id and rank.
--   step: The step that it lies in, where it is one
SELECT run_id, attempt, rank, incarnation, category, step, begin_ns, end_ns, make_timestamp_ns(begin_ns) AS begin_at,
       end_ns - begin_ns AS duration_ns
FROM d_ledger_interval
