-- One row per piece of evidence of an incident, the weightiest first.
--   ordinal: Place by weight, from 1
--   role: root (speaks of the rank that failed first), collateral (of another), context (of none)
--   weight [0-100]: How much it says about the cause
--   kind: What kind of evidence
--   observer: Who noticed
--   observed_ns: When it was noticed
--   message: What it says
--   source_path: File or stream that it came from
SELECT e.run_id, i.incident_id,
       row_number() OVER (PARTITION BY e.run_id, i.incident_id ORDER BY e.weight DESC, e.time_ns, e.rank) AS ordinal,
       CASE WHEN e.rank IS NULL THEN 'context' WHEN e.rank = i.root_rank THEN 'root' ELSE 'collateral' END AS role,
       e.weight, e.kind, e.rank, e.host, e.time_ns, make_timestamp_ns(e.time_ns) AS time_at, e.observed_ns, e.observer,
       e.message, coalesce(s.path, s.stream) AS source_path
FROM d_evidence e
JOIN d_incident i USING (run_id, attempt, lane, incarnation)
LEFT JOIN source s USING (source_id)
