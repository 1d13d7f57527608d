-- Who makes the others wait: one row per process and group. A collective waits for its last member: (last - second
-- last arrival) x the others is charged to that member.
--   arrivals: Collectives or steps judged
--   last_arrivals: Of them, those to which it came last
--   imposed_ns: Rank time that it made others wait
--   waited_ns: Time that it waited itself
SELECT l.run_id, l.attempt, l.rank, l.incarnation, p.host, p.replica_group, p.mesh, l.pg, l.arrivals, l.last_arrivals,
       l.imposed_ns, l.waited_ns
FROM d_lateness l JOIN d_process p USING (run_id, attempt, rank, incarnation)
