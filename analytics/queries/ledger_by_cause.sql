-- Grain: incident and category. What each incident cost, in seconds of rank time.
SELECT
    'incident ' || c.incident_id || ', ' || replace(c.kind, '_', ' ') AS member,
    c.incident_id AS number, NULL AS host, c.category, c.ns / 1e9 AS rank_s,
    c.ns / nullif(t.total_ns, 0) AS share_ratio, NULL AS effective_ratio,
    count(DISTINCT c.incident_id) OVER () AS members
FROM v_ledger_cause AS c
CROSS JOIN (SELECT sum(ns)::DOUBLE AS total_ns FROM v_ledger_total WHERE run_id = $run) AS t
WHERE c.run_id = $run
ORDER BY c.ns DESC
LIMIT $limit * 16
