-- How do the runs compare?
SELECT run_id, status, ranks, attempts, failures, steps_committed, steps_lost,
    round(100 * ett_capacity, 1) AS ett_capacity_percent, time_to_start_s, time_to_recover_s
FROM v_run
ORDER BY began_ns DESC
