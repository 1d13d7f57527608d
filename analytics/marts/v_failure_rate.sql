-- How often a run failed for its size: one row per run.
--   nodes: Hosts
--   node_days [d]: Time that hosts had a process of the run
--   failures: Incidents
--   wall_h: First to last moment
--   failures_per_1000_node_days [1/1000 d]: Rate; a point value
--   mttf_h: Mean time to failure; null: nothing failed
SELECT r.run_id, r.ranks, greatest(r.hosts, 1) AS nodes, h.node_days, r.failures,
       (r.ended_ns - r.began_ns) / 3600e9 AS wall_h, 1000 * r.failures / nullif(h.node_days, 0) AS failures_per_1000_node_days,
       (r.ended_ns - r.began_ns) / 3600e9 / nullif(r.failures, 0) AS mttf_h
FROM d_run r LEFT JOIN (SELECT run_id, sum(node_days) AS node_days FROM v_host_failure GROUP BY ALL) h USING (run_id)
