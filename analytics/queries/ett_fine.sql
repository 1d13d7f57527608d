-- Grain: one of $buckets pieces of a run too short for minutes. Effective training time of the $window pieces up to
-- it, and so far.
WITH cut AS (
    SELECT greatest(($t1 - $t0) // $buckets, 1) AS width_ns
),
piece AS (
    SELECT
        i.category, i.begin_ns, i.end_ns, cut.width_ns,
        unnest(range(
            (greatest(i.begin_ns, $t0) - $t0) // cut.width_ns,
            (least(i.end_ns, $t1) - 1 - $t0) // cut.width_ns + 1
        )) AS bucket
    FROM v_ledger_interval AS i, cut
    WHERE
        i.run_id = $run AND i.end_ns > $t0 AND i.begin_ns < $t1 AND i.end_ns > i.begin_ns
        AND i.category <> 'queue'
),
filled AS (
    SELECT
        bucket, width_ns, category,
        least(end_ns, $t0 + (bucket + 1) * width_ns) - greatest(begin_ns, $t0 + bucket * width_ns) AS ns
    FROM piece
),
summed AS (
    SELECT
        bucket, width_ns,
        sum(ns)::DOUBLE AS all_ns,
        coalesce(sum(ns) FILTER (category = 'absent'), 0)::DOUBLE AS absent_ns,
        coalesce(
            sum(ns) FILTER (category IN ('productive', 'straggler_wait', 'data_wait')), 0
        )::DOUBLE AS effective_ns
    FROM filled
    GROUP BY bucket, width_ns
)
SELECT
    $t0 + (bucket + 1) * width_ns AS time_ns,
    sum(effective_ns) OVER so_far / nullif(sum(all_ns) OVER so_far, 0) AS ett_capacity,
    sum(effective_ns) OVER so_far / nullif(sum(all_ns - absent_ns) OVER so_far, 0) AS ett_time,
    sum(effective_ns) OVER recent / nullif(sum(all_ns) OVER recent, 0) AS ett_capacity_window
FROM summed
WINDOW
    so_far AS (ORDER BY bucket),
    recent AS (ORDER BY bucket RANGE BETWEEN $window - 1 PRECEDING AND CURRENT ROW)
ORDER BY bucket
