-- One row per run: how it went, what it cost, and how much of it was seen.
--   status: running, finished, failed, or stalled: no step has been committed for max(30 s, 5 reference steps)
--   origin: recorded, imported, emulated or simulated
--   ranks: Ranks planned at any time
--   replica_groups: Replica groups seen; 0 without fault tolerance
--   hosts: Hosts seen
--   attempts: Launches and restarts
--   ended_ns: Last moment; while the run goes on, its latest record
--   ended_at: Last moment; while the run goes on, its latest record
--   wall_ns: First to last moment
--   wall_s: First to last moment
--   time_to_start_s: First moment to the first step, begun by the last of the ranks that were there
--   time_to_recover_s: Failure to full strength, median over incidents that recovered
--   time_to_recover_max_s: Failure to full strength, the worst
--   failures: Incidents, planned ends left out
--   steps_committed: Steps committed and never rolled back, by step number
--   steps_lost: Steps thrown away: never committed, in flight at a failure, or rolled back
--   ett_time [ratio]: Effective training time: E over planned time without queue and absent. E is productive, straggler_wait and data_wait
--   ett_capacity [ratio]: The headline: E over all planned time but the queue, so that lost capacity counts
--   ett_mfu [ratio]: As ett_capacity for productive time alone, each step weighed by min(1, MFU over mfu_reference); null where no MFU was recorded
--   mfu_reference [ratio]: 95th percentile of MFU over steady steps
--   step_efficiency [ratio]: How even kept steps are: sum of min(duration, reference) over sum of durations
--   reference_step_ns: Median duration of kept steps at full strength, first steps left out
--   ledger_total_ns: All planned rank time: what the ledger's categories add up to
--   ranks_expected: Ranks that should have reported
--   ranks_reporting: Ranks that did
--   dropped: Records that the recorder or a reader had to drop
--   errors: Damaged or unreadable records
--   as_of_ns: The latest record of any source: what all other columns are as of
--   last_commit_ns: End of the last step that was committed
--   framework: Training framework and version
--   backend: Communication backend
--   device_kind: Device that the ranks computed on
--   command: Command line
SELECT run_id,
       CASE WHEN status = 'running' AND is_stepping AND coalesce(origin, 'recorded') = 'recorded'
                 AND epoch_us(now()) * 1000 - last_commit_ns > greatest(30000000000, 5 * coalesce(reference_step_ns, 0))
            THEN 'stalled' ELSE status END AS status,
       coalesce(origin, 'recorded') AS origin, ranks, replica_groups, hosts, attempts, began_ns, ended_ns,
       make_timestamp_ns(began_ns) AS began_at, make_timestamp_ns(ended_ns) AS ended_at,
       ended_ns - began_ns AS wall_ns, (ended_ns - began_ns) / 1e9 AS wall_s,
       time_to_start_ns / 1e9 AS time_to_start_s, time_to_recover_ns / 1e9 AS time_to_recover_s,
       time_to_recover_max_ns / 1e9 AS time_to_recover_max_s, failures, steps_committed, steps_lost,
       effective_ns::DOUBLE / nullif((planned_ns - queue_ns - absent_ns)::DOUBLE, 0) AS ett_time,
       effective_ns::DOUBLE / nullif((planned_ns - queue_ns)::DOUBLE, 0) AS ett_capacity,
       effective_mfu_ns::DOUBLE / nullif((planned_ns - queue_ns)::DOUBLE, 0) AS ett_mfu, mfu_reference, step_efficiency,
       reference_step_ns, planned_ns AS ledger_total_ns, ranks_expected, ranks_reporting, dropped, errors, as_of_ns,
       last_commit_ns, framework, backend, device_kind, command
FROM d_run
