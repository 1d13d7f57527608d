-- Grain: run with incidents. Its first incident, for the table of runs.
WITH newest AS (
    SELECT run_id FROM v_run ORDER BY began_ns DESC, run_id LIMIT $limit
)
SELECT run_id, arg_min(root_rank, began_ns) AS root_rank, arg_min(kind, began_ns) AS kind, count(*) AS incidents
FROM v_incident
WHERE run_id IN (SELECT run_id FROM newest)
GROUP BY run_id
