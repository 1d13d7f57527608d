-- Grain: the one run. What expected effective time is computed from, as this run shows it: every restart, every gap
-- between checkpoints and every save, in seconds. Empty lists: the run shows none.
WITH save AS (
    SELECT
        max_s AS write_s, (begin_ns - lag(end_ns) OVER (PARTITION BY attempt ORDER BY begin_ns)) / 1e9 AS gap_s
    FROM v_checkpoint
    WHERE run_id = $run AND kind = 'save'
),
restart AS (
    SELECT incident_id, sum(seconds) AS restart_s
    FROM v_restart_cost
    WHERE run_id = $run AND part <> 'redo'
    GROUP BY incident_id
    HAVING bool_or(part = 'init')
),
incident AS (
    SELECT median(detect_s) AS detect_s FROM v_incident WHERE run_id = $run AND kind <> 'planned'
)
SELECT
    r.failures, r.ranks, r.replica_groups, r.time_to_start_s, o.observed_s, o.queue_s, incident.detect_s,
    coalesce((SELECT list(restart_s ORDER BY incident_id) FROM restart), []) AS restart_s,
    coalesce((SELECT list(gap_s) FROM save WHERE gap_s >= 0), []) AS gap_s,
    coalesce((SELECT list(write_s) FROM save), []) AS write_s
FROM v_run AS r
JOIN v_ettr_inputs AS o ON r.run_id = o.run_id
CROSS JOIN incident
WHERE r.run_id = $run
