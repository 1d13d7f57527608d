-- What is the evidence behind each verdict?
SELECT incident_id, role, weight, kind, rank, observer, message
FROM v_evidence
WHERE run_id = $run
ORDER BY incident_id, weight DESC
