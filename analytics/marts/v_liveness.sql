-- Runs whose records do not say that they ended: which of them train, and which only look alive. One row per run.
--   status: As v_run has it
--   state: training; starting: no step yet; stuck: it gives signs of life and commits nothing; silent: no sign of life for a minute, and nobody saw it end
--   processes_alive: Processes that nobody saw end
--   last_sign_at [UTC]: Last record of any of them
--   silent_s: Since then
--   last_commit_at [UTC]: Last step committed
--   without_commit_s: Since then
WITH living AS (
    SELECT run_id, count(*) AS processes_alive, max(last_ns) AS last_ns
    FROM d_process WHERE ended_ns IS NULL GROUP BY ALL
), judged AS (
    SELECT r.run_id, v.status, l.processes_alive, coalesce(l.last_ns, r.as_of_ns) AS last_ns, r.last_commit_ns,
           epoch_us(now()) * 1000 AS now_ns
    FROM d_run r JOIN v_run v USING (run_id) LEFT JOIN living l USING (run_id)
    WHERE v.status IN ('running', 'stalled')
)
SELECT run_id, status,
       CASE WHEN now_ns - last_ns > 60000000000 THEN 'silent' WHEN status = 'stalled' THEN 'stuck'
            WHEN last_commit_ns IS NULL THEN 'starting' ELSE 'training' END AS state,
       coalesce(processes_alive, 0) AS processes_alive, make_timestamp_ns(last_ns) AS last_sign_at,
       (now_ns - last_ns) / 1e9 AS silent_s, make_timestamp_ns(last_commit_ns) AS last_commit_at,
       (now_ns - last_commit_ns) / 1e9 AS without_commit_s
FROM judged
