-- Grain: stretch of time of one lane. A lane is one of the $picked ranks, or all of them together where $lanes is 1.
-- Time is cut into $buckets pieces between $t0 and $t1, a piece takes the category that fills most of it, and equal
-- neighbours are merged: never more than lanes × $buckets rows, however long the run.
WITH cut AS (
    SELECT greatest(($t1 - $t0) // $buckets, 1) AS width_ns
),
picked AS (
    SELECT
        unnest($picked)::INTEGER AS rank,
        CASE WHEN $lanes = 1 THEN 0 ELSE unnest(range(len($picked)))::INTEGER END AS lane
),
piece AS (
    SELECT
        p.lane, i.category, i.begin_ns, i.end_ns, cut.width_ns,
        unnest(range(
            (greatest(i.begin_ns, $t0) - $t0) // cut.width_ns,
            (least(i.end_ns, $t1) - 1 - $t0) // cut.width_ns + 1
        )) AS bucket
    FROM v_ledger_interval AS i
    JOIN picked AS p ON i.rank = p.rank
    CROSS JOIN cut
    WHERE i.run_id = $run AND i.end_ns > $t0 AND i.begin_ns < $t1 AND i.end_ns > i.begin_ns
),
share AS (
    SELECT
        lane, bucket, category, width_ns,
        sum(
            least(end_ns, $t0 + (bucket + 1) * width_ns) - greatest(begin_ns, $t0 + bucket * width_ns)
        ) AS ns
    FROM piece
    GROUP BY ALL
),
state AS (
    SELECT lane, bucket, width_ns, arg_max(category, ns) AS category
    FROM share
    GROUP BY lane, bucket, width_ns
),
island AS (
    SELECT
        *, bucket - row_number() OVER (PARTITION BY lane, category ORDER BY bucket) AS run_of
    FROM state
)
SELECT
    lane, category,
    $t0 + min(bucket) * any_value(width_ns) AS begin_ns,
    least($t0 + (max(bucket) + 1) * any_value(width_ns), $t1) AS end_ns
FROM island
GROUP BY lane, category, run_of
ORDER BY lane, begin_ns
