-- Grain: piece of evidence of one incident, weightiest first; what is only a consequence comes after the cause.
SELECT ordinal, role, weight, kind, rank, host, time_ns, observer, message, source_path
FROM v_evidence
WHERE run_id = $run AND incident_id = $incident
ORDER BY CASE role WHEN 'root' THEN 0 WHEN 'collateral' THEN 1 ELSE 2 END, weight DESC, ordinal
LIMIT $limit
