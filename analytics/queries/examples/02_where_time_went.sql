-- Where did the rank time of this run go?
SELECT category, sum(ns) / 1e9 AS rank_s, round(100 * sum(ns) / sum(sum(ns)) OVER (), 2) AS percent
FROM v_ledger
WHERE run_id = $run
GROUP BY category
ORDER BY rank_s DESC
