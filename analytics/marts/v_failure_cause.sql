-- Failures by cause, in the names of the Llama 3 table (arXiv 2407.21783) where evidence or the kind of failure leaves
-- no choice: one row per run, kind and cause. Sum over runs at will.
--   kind: What kind of failure
--   cause: What broke: the evidence's own word for it, else what the kind implies, else unknown
--   failures: How many
WITH told AS (
    SELECT e.run_id, i.incident_id, first(s.attrs ->> 'cause' ORDER BY e.weight DESC) AS cause
    FROM d_incident i
    JOIN d_evidence e USING (run_id, attempt, lane, incarnation)
    JOIN signal s ON s.run_id = e.run_id AND s.attempt = e.attempt AND s.kind = e.kind
                 AND s.rank IS NOT DISTINCT FROM e.rank AND (s.attrs ->> 'cause') IS NOT NULL
    GROUP BY ALL
)
SELECT i.run_id, i.kind,
       coalesce(t.cause, CASE
           WHEN i.kind IN ('out_of_memory', 'exception', 'type_mismatch', 'size_mismatch', 'dtype_mismatch', 'data')
               THEN 'software_bug'
           WHEN i.kind IN ('hang', 'missing_rank') THEN 'nccl_watchdog'
           WHEN i.kind = 'network' THEN 'switch_cable'
           WHEN i.kind IN ('storage', 'store', 'launcher', 'coordinator') THEN 'dependency'
           WHEN i.kind = 'planned' THEN 'planned'
           ELSE 'unknown' END) AS cause,
       count(*) AS failures
FROM d_incident i LEFT JOIN told t USING (run_id, incident_id)
GROUP BY ALL
