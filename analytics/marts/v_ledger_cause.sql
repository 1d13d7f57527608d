-- Lost rank time by the incident that cost it: detection, lost steps and absence in the attempt that failed; the
-- restart and the start-up of the attempt after it. Nothing else is charged to an incident.
--   kind: What kind of failure
--   ns [ns]: Rank time
SELECT i.run_id, i.incident_id, i.kind, l.category, sum(l.ns)::BIGINT AS ns
FROM d_incident i
JOIN d_ledger l ON l.run_id = i.run_id
 AND (l.attempt = i.attempt AND l.category IN ('detect', 'lost', 'absent', 'quorum', 'reconfigure')
      OR l.attempt = i.next_attempt AND l.category IN ('restart', 'init', 'heal'))
JOIN d_frame f ON f.run_id = i.run_id AND NOT f.has_lanes
GROUP BY ALL
