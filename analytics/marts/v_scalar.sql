-- One row per value that a rank logged.
--   name: What it is: loss, tokens, mfu …
--   value: The value
SELECT run_id, attempt, rank, incarnation, step, name, value, time_ns, make_timestamp_ns(time_ns) AS time_at, source_id
FROM scalar
