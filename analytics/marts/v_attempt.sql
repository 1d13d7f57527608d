-- One row per attempt: one launch of the run's workers, or a restart by the launcher.
--   ranks_reporting: Ranks that told something
--   window_begin_ns: From here on the ledger counts time for this attempt: the end of the one before
--   window_end_ns: To here
--   first_step_ns: First step's begin, anywhere
--   first_step_at: First step's begin, anywhere
--   end_reason: failed, finished, or running
--   first_step: First step number: where it resumed
--   last_step: Last step number begun
--   steps_kept: Steps committed here and never rolled back
--   steps_lost: Steps thrown away here
--   init_s: Process start to first step, on the slowest rank
WITH process AS (
    SELECT run_id, attempt, count(DISTINCT rank) FILTER (WHERE described) AS ranks_reporting, min(spawn_ns) AS began_ns,
           CASE WHEN bool_and(ended_ns IS NOT NULL) THEN max(ended_ns) END AS ended_ns,
           min(first_step_begin_ns) AS first_step_ns, min(first_step) AS first_step, max(last_step) AS last_step,
           max(first_step_begin_ns - spawn_ns) AS init_ns
    FROM d_process GROUP BY ALL
), step AS (
    SELECT run_id, attempt, count(*) FILTER (WHERE ranks_kept > 0) AS steps_kept,
           count(*) FILTER (WHERE lost_ranks > 0) AS steps_lost
    FROM d_step_summary GROUP BY ALL
), own_window AS (
    SELECT run_id, attempt, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns FROM d_window GROUP BY ALL
), broken AS (
    SELECT DISTINCT run_id, attempt FROM d_incident
)
SELECT w.run_id, w.attempt, a.launch_id, a.restart_count, coalesce(a.world_size, p.ranks_reporting) AS world_size,
       coalesce(p.ranks_reporting, 0) AS ranks_reporting, w.begin_ns AS window_begin_ns, w.end_ns AS window_end_ns,
       coalesce(p.began_ns, a.began_ns) AS began_ns, p.first_step_ns, p.ended_ns,
       make_timestamp_ns(coalesce(p.began_ns, a.began_ns)) AS began_at,
       make_timestamp_ns(p.first_step_ns) AS first_step_at, make_timestamp_ns(p.ended_ns) AS ended_at,
       CASE WHEN b.run_id IS NOT NULL THEN 'failed' WHEN p.ended_ns IS NULL AND p.run_id IS NOT NULL THEN 'running'
            ELSE 'finished' END AS end_reason,
       p.first_step, p.last_step, coalesce(s.steps_kept, 0) AS steps_kept, coalesce(s.steps_lost, 0) AS steps_lost,
       p.init_ns / 1e9 AS init_s
FROM own_window w
LEFT JOIN attempt a USING (run_id, attempt)
LEFT JOIN process p USING (run_id, attempt)
LEFT JOIN step s USING (run_id, attempt)
LEFT JOIN broken b USING (run_id, attempt)
