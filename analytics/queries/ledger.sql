-- Grain: category. All rank time of the run; the shares sum to 1 exactly.
SELECT
    category,
    sum(ns)::BIGINT AS ns,
    sum(ns) / 1e9 AS rank_s,
    sum(ns) / sum(sum(ns)) OVER () AS share
FROM v_ledger
WHERE run_id = $run
GROUP BY category
ORDER BY ns DESC
