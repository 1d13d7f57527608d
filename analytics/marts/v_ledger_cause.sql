-- Lost rank time by the incident that cost it: detection, lost steps and absence in the attempt that failed; the
-- restart and the start-up of the attempt after it. With replica groups, the same for the failed group alone: what
-- the other groups waited is in v_ledger, and charged to nobody.
--   kind: What kind of failure
--   ns [ns]: Rank time
SELECT i.run_id, i.incident_id, i.kind, l.category, sum(l.ns)::BIGINT AS ns
FROM d_incident i
JOIN d_ledger l ON l.run_id = i.run_id AND (i.lane = -1 OR l.replica_group = i.lane)
 AND (l.attempt = i.attempt AND (i.lane = -1 OR l.incarnation = i.incarnation)
      AND l.category IN ('detect', 'lost', 'absent', 'quorum', 'reconfigure')
      OR l.attempt = i.next_attempt AND (i.lane = -1 OR l.incarnation = i.next_incarnation)
      AND l.category IN ('restart', 'init', 'heal', 'absent')
      AND (i.lane >= 0 OR l.category <> 'absent'))
GROUP BY ALL
