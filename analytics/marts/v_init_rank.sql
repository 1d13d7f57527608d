-- One row per start-up phase of a process. Phases nest, so durations are exclusive: they add up to its start-up.
--   begin_ns: First moment in the phase
--   end_ns: Last moment in the phase
--   duration_ns: Time in the phase and in no inner one
SELECT i.run_id, i.attempt, i.rank, i.incarnation, p.host, p.replica_group, i.phase, i.ordinal, i.begin_ns, i.end_ns,
       i.duration_ns, i.duration_ns / 1e9 AS duration_s
FROM d_init_rank i JOIN d_process p USING (run_id, attempt, rank, incarnation)
