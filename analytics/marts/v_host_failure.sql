-- Failures by the host of their root cause, with the time that the host was in use: one row per run and host. Summed
-- over runs it shows repeat offenders; analytics/reliability.py says which are more than chance explains.
--   failures: Incidents whose root rank was on it
--   node_days [d]: Time that it had a process of the run
--   failures_per_1000_node_days [1/1000 d]: Rate; a point value, one failure says little
WITH life AS (
    SELECT p.run_id, p.host, p.spawn_ns AS begin_ns, coalesce(p.ended_ns, f.end_ns) AS end_ns
    FROM d_process p JOIN d_frame f USING (run_id) WHERE p.host IS NOT NULL
), reached AS (
    SELECT *, max(end_ns) OVER (PARTITION BY run_id, host ORDER BY begin_ns, end_ns
                                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
    FROM life
), used AS (
    SELECT run_id, host, sum(greatest(end_ns - greatest(begin_ns, coalesce(before_ns, begin_ns)), 0)) / 86400e9 AS node_days
    FROM reached GROUP BY ALL
), failed AS (
    SELECT run_id, root_host AS host, count(*) AS failures
    FROM d_incident WHERE root_host IS NOT NULL AND kind <> 'planned' GROUP BY ALL
)
SELECT u.run_id, u.host, coalesce(f.failures, 0) AS failures, u.node_days,
       1000 * coalesce(f.failures, 0) / nullif(u.node_days, 0) AS failures_per_1000_node_days
FROM used u LEFT JOIN failed f USING (run_id, host)
