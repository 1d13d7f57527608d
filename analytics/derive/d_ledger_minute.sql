-- The ledger over time, by whole minutes. A rank time up to T is, over all edges before T, sum of delta x (T - t) =
-- T x sum of deltas - sum of delta x t: so the edges are summed by minute first, and no interval is cut.
WITH edge AS (
    SELECT category, begin_ns AS t, 1 AS delta FROM d_ledger_interval WHERE run_id = $run_id
    UNION ALL
    SELECT category, end_ns, -1 FROM d_ledger_interval WHERE run_id = $run_id
), summed AS (
    SELECT category, t // 60000000000 AS minute, sum(delta)::HUGEINT AS deltas,
           sum((t % 60000000000) * delta)::HUGEINT AS within
    FROM edge GROUP BY ALL
), every_minute AS (
    SELECT category, unnest(range(min(minute), max(minute) + 1)) AS minute FROM summed GROUP BY category
), level AS (
    SELECT m.category, m.minute, coalesce(s.deltas, 0) AS deltas, coalesce(s.within, 0) AS within,
           coalesce(sum(s.deltas) OVER (
               PARTITION BY m.category ORDER BY m.minute ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS ranks
    FROM every_minute m LEFT JOIN summed s USING (category, minute)
)
-- Ranks there at the minute's begin stay for all of it; who comes or goes within adds or takes the rest of it.
SELECT $run_id AS run_id, minute * 60000000000 AS bucket_ns, category,
       (60000000000 * (ranks + deltas) - within)::BIGINT AS ns
FROM level WHERE 60000000000 * (ranks + deltas) - within <> 0
