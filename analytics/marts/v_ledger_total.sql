-- The time ledger of a run: one row per category, all sixteen, in the ledger's order.
--   ordinal: Place in the order in which categories win
--   ns [ns]: Rank time of all ranks
--   rank_s [rank s]: Rank time of all ranks
--   share_ratio: Of all planned rank time
WITH order_of AS (
    SELECT unnest(['queue', 'absent', 'restart', 'detect', 'quorum', 'reconfigure', 'heal', 'lost', 'init', 'checkpoint',
                   'eval', 'data_wait', 'straggler_wait', 'stall', 'productive', 'unexplained']) AS category,
           unnest(range(16))::INTEGER AS ordinal
), summed AS (
    SELECT run_id, category, sum(ns) AS ns FROM d_ledger GROUP BY ALL
)
SELECT r.run_id, o.category, o.ordinal, coalesce(s.ns, 0)::HUGEINT AS ns, coalesce(s.ns, 0)::DOUBLE / 1e9 AS rank_s,
       coalesce(s.ns, 0)::DOUBLE / nullif(r.planned_ns::DOUBLE, 0) AS share_ratio
FROM d_run r CROSS JOIN order_of o LEFT JOIN summed s ON s.run_id = r.run_id AND s.category = o.category
