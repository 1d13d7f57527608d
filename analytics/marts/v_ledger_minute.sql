-- The ledger over time: one row per minute and category, all ranks together.
--   bucket_ns: The minute's begin
--   bucket_at [UTC]: The minute's begin
--   ns [ns]: Rank time
SELECT run_id, bucket_ns, make_timestamp_ns(bucket_ns) AS bucket_at, category, ns FROM d_ledger_minute
