-- Grain: category. All rank time of the run; the shares sum to 1 exactly.
SELECT category, ns, rank_s, share_ratio
FROM v_ledger_total
WHERE run_id = $run
ORDER BY ordinal
