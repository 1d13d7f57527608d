-- Effective training time over the run: one row per minute, for the hour up to it and for the run up to it.
--   bucket_ns: The minute's begin
--   bucket_at [UTC]: The minute's begin
--   ett_capacity_hour [ratio]: Over the sixty minutes that end with this one
--   ett_time_hour [ratio]: The same without absent time
--   ett_capacity [ratio]: From the run's begin
--   ett_time [ratio]: From the run's begin, without absent time
WITH minute AS (
    SELECT run_id, bucket_ns, sum(ns) FILTER (WHERE category <> 'queue') AS all_ns,
           coalesce(sum(ns) FILTER (WHERE category = 'absent'), 0) AS absent_ns,
           coalesce(sum(ns) FILTER (WHERE category IN ('productive', 'straggler_wait', 'data_wait')), 0) AS effective_ns
    FROM d_ledger_minute GROUP BY ALL
)
SELECT run_id, bucket_ns, make_timestamp_ns(bucket_ns) AS bucket_at,
       (sum(effective_ns) OVER hour)::DOUBLE / nullif((sum(all_ns) OVER hour)::DOUBLE, 0) AS ett_capacity_hour,
       (sum(effective_ns) OVER hour)::DOUBLE / nullif((sum(all_ns - absent_ns) OVER hour)::DOUBLE, 0) AS ett_time_hour,
       (sum(effective_ns) OVER so_far)::DOUBLE / nullif((sum(all_ns) OVER so_far)::DOUBLE, 0) AS ett_capacity,
       (sum(effective_ns) OVER so_far)::DOUBLE / nullif((sum(all_ns - absent_ns) OVER so_far)::DOUBLE, 0) AS ett_time
FROM minute
WINDOW hour AS (PARTITION BY run_id ORDER BY bucket_ns RANGE BETWEEN 3540000000000 PRECEDING AND CURRENT ROW),
       so_far AS (PARTITION BY run_id ORDER BY bucket_ns)
