-- One row per incident: one cause and all it led to, from the failure until full strength.
--   attempt: Attempt that failed
--   began_ns: Failure
--   began_at: Failure
--   began_low_ns: Earliest possible failure: the root rank's last record
--   detected_ns: First observation by anybody but the failed rank
--   recovered_ns: All planned ranks have committed a step again; null: they have not
--   kind: One of the list of failure kinds
--   verdict: What happened, in words
--   confidence [0-1]: How sure the root cause is
--   root_rank: The rank that failed first; null: none stands out
--   root_host: Its host
--   missing_ranks: Members of the group that never joined the collective that the others were in
--   pg: Process group of the collective that most survivors were in
--   seq: Position of that collective in its group
--   held_ranks: Ranks that lost or waited at least one step
--   restarted_ranks: Ranks whose process had to start again
--   isolated: The failure stayed within its replica group; false without replica groups
--   detect_s: Failure to first observation
--   quorum_s: Blocked in quorum calls, on the slowest rank
--   reconfigure_s: Rebuilding process groups, on the slowest rank
--   restart_s: Last process' end to the next one's start
--   heal_s: Receiving state, on the slowest rank
--   stall_s: Last commit before to next commit after, less one reference step
--   steps_lost: Steps thrown away, the one in flight counted
--   recovered: Full strength was reached again
SELECT i.run_id, i.incident_id, i.attempt, i.began_low_ns, i.began_ns, make_timestamp_ns(i.began_ns) AS began_at,
       i.detected_ns, i.recovered_ns, i.kind,
       CASE WHEN i.root_rank IS NULL THEN 'no rank stands out as the cause'
            ELSE 'rank ' || i.root_rank || coalesce(' on ' || i.root_host, '') || ' ' ||
                 CASE WHEN i.kind = 'out_of_memory' THEN 'ran out of memory'
                      WHEN i.root_exit_code < 0 THEN 'was ended by ' || CASE i.root_exit_code
                          WHEN -9 THEN 'SIGKILL' WHEN -11 THEN 'SIGSEGV' WHEN -6 THEN 'SIGABRT' WHEN -7 THEN 'SIGBUS'
                          WHEN -15 THEN 'SIGTERM' WHEN -2 THEN 'SIGINT' WHEN -4 THEN 'SIGILL' WHEN -8 THEN 'SIGFPE'
                          ELSE 'signal ' || (-i.root_exit_code)::INTEGER END
                      WHEN i.root_exit_code IS NOT NULL THEN 'ended with exit code ' || i.root_exit_code
                      ELSE 'failed: ' || coalesce(regexp_extract(i.root_message, '^[^\n]{0,200}'), i.root_kind) END
       END AS verdict,
       i.confidence, i.root_rank, i.root_host, i.replica_group, m.missing_ranks, m.pg, m.seq, m.held_ranks,
       m.restarted_ranks, m.is_isolated AS isolated, greatest(i.detected_ns - i.began_ns, 0) / 1e9 AS detect_s,
       m.quorum_ns / 1e9 AS quorum_s, m.reconfigure_ns / 1e9 AS reconfigure_s, m.restart_ns / 1e9 AS restart_s,
       m.heal_ns / 1e9 AS heal_s, m.stall_ns / 1e9 AS stall_s, m.steps_lost, i.recovered_ns IS NOT NULL AS recovered
FROM d_incident i JOIN d_impact m USING (run_id, incident_id)
