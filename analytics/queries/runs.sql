-- Grain: one run, newest first. Feeds the table of runs.
SELECT
    run_id, status, origin, ranks, replica_groups, hosts, attempts, began_ns, wall_s,
    time_to_start_s, time_to_recover_s, failures, steps_committed, steps_lost,
    ett_time, ett_capacity, ranks_expected, ranks_reporting, dropped, as_of_ns
FROM v_run
ORDER BY began_ns DESC, run_id
LIMIT $limit
