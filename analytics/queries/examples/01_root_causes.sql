-- Which rank failed first, in every run?
SELECT run_id, began_ns, kind, root_rank, root_host, confidence, verdict
FROM v_incident
ORDER BY began_ns DESC
