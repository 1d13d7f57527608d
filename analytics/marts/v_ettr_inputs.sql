-- What the expected effective time of a run is computed from, as the run itself shows it: one row per run. Null: the
-- run does not show it.
--   failures: Failures seen
--   observed_s: Time in which they were seen, the queue taken off
--   nodes: Hosts
--   failures_per_day [1/d]: Failure rate of the whole job
--   failures_per_node_day [1/d]: The same per host
--   mttf_h: Mean time to failure of the job
--   restart_s: Failure to the next first step, mean: the restart overhead u0
--   restart_low_s: The shortest
--   restart_high_s: The longest
--   checkpoint_interval_s: Save to save, mean
--   checkpoint_write_s: Blocking part of a save on its slowest rank, mean
--   checkpoints: Saves seen
--   queue_s: Wait for an allocation per interruption, mean
--   productive_s: Effective time of a rank, mean
WITH restart AS (
    SELECT run_id, incident_id, sum(seconds) AS seconds
    FROM v_restart_cost WHERE part <> 'redo' GROUP BY ALL HAVING bool_or(part = 'init')
), restarts AS (
    SELECT run_id, avg(seconds) AS restart_s, min(seconds) AS restart_low_s, max(seconds) AS restart_high_s
    FROM restart GROUP BY ALL
), save AS (
    SELECT run_id, begin_ns - lag(begin_ns) OVER (PARTITION BY run_id, attempt ORDER BY begin_ns) AS interval_ns, max_s
    FROM v_checkpoint WHERE kind = 'save'
), saves AS (
    SELECT run_id, avg(interval_ns) / 1e9 AS checkpoint_interval_s, avg(max_s) AS checkpoint_write_s, count(*) AS checkpoints
    FROM save GROUP BY ALL
), observed AS (
    SELECT run_id, failures, ended_ns - began_ns - queue_ns::DOUBLE / nullif(ranks, 0) AS observed_ns,
           greatest(hosts, 1) AS nodes, ranks, attempts, queue_ns, effective_ns
    FROM d_run
)
SELECT o.run_id, o.failures, o.observed_ns / 1e9 AS observed_s, o.nodes,
       o.failures / nullif(o.observed_ns / 86400e9, 0) AS failures_per_day,
       o.failures / nullif(o.observed_ns / 86400e9 * o.nodes, 0) AS failures_per_node_day,
       o.observed_ns / 3600e9 / nullif(o.failures, 0) AS mttf_h,
       r.restart_s, r.restart_low_s, r.restart_high_s, s.checkpoint_interval_s, s.checkpoint_write_s,
       coalesce(s.checkpoints, 0) AS checkpoints,
       o.queue_ns::DOUBLE / 1e9 / nullif(o.ranks * greatest(o.attempts - 1, 1), 0) AS queue_s,
       o.effective_ns::DOUBLE / 1e9 / nullif(o.ranks, 0) AS productive_s
FROM observed o LEFT JOIN restarts r USING (run_id) LEFT JOIN saves s USING (run_id)
