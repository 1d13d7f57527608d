-- Grain: attempt.
SELECT
    attempt, world_size, ranks_reporting, began_ns, first_step_ns, ended_ns, end_reason,
    first_step, last_step, steps_kept, steps_lost, init_s
FROM v_attempt
WHERE run_id = $run
ORDER BY attempt
