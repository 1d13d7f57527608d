INSERT INTO attempt (run_id, attempt, launch_id, restart_count, world_size, began_ns)
VALUES ($run, $attempt, 'large', $attempt, $ranks, $spawn)
