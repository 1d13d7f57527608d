-- Grain: stretch of time of the whole run, cut into at most $buckets pieces of whole minutes; a piece takes the
-- category in which its ranks spent most time, and equal neighbours are merged. For runs of hours and days.
WITH span AS (
    SELECT greatest((max(bucket_ns) - min(bucket_ns)) // 60000000000 // $buckets, 1) * 60000000000 AS width_ns
    FROM v_ledger_minute
    WHERE run_id = $run
),
share AS (
    SELECT m.bucket_ns // span.width_ns AS bucket, span.width_ns, m.category, sum(m.ns) AS ns
    FROM v_ledger_minute AS m
    CROSS JOIN span
    WHERE m.run_id = $run
    GROUP BY ALL
),
state AS (
    SELECT bucket, width_ns, arg_max(category, ns) AS category FROM share GROUP BY bucket, width_ns
),
island AS (
    SELECT *, bucket - row_number() OVER (PARTITION BY category ORDER BY bucket) AS run_of FROM state
)
SELECT
    0 AS lane, category,
    greatest(min(bucket) * any_value(width_ns), $t0) AS begin_ns,
    least((max(bucket) + 1) * any_value(width_ns), $t1) AS end_ns
FROM island
GROUP BY category, run_of
ORDER BY begin_ns
