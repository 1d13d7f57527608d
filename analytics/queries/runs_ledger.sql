-- Grain: run and category. The small ledger bar in each row of the table of runs.
WITH newest AS (
    SELECT run_id FROM v_run ORDER BY began_ns DESC, run_id LIMIT $limit
)
SELECT run_id, category, share_ratio
FROM v_ledger_total
WHERE run_id IN (SELECT run_id FROM newest)
