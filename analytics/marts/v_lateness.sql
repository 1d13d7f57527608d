-- How late a rank comes to its groups' collectives: one row per process and group.
--   basis: collective: from every collective; rollup: from the first arrival of each step
--   arrivals: Collectives or steps judged
--   late_mean_ns: Arrival less the group's median arrival, mean
--   late_p50_ns: The same, median
--   late_p95_ns: The same, 95th percentile
--   late_max_ns: The same, largest
SELECT l.run_id, l.attempt, l.rank, l.incarnation, p.host, p.replica_group, p.mesh, l.pg, l.basis, l.arrivals,
       l.late_mean_ns, l.late_p50_ns, l.late_p95_ns, l.late_max_ns
FROM d_lateness l JOIN d_process p USING (run_id, attempt, rank, incarnation)
