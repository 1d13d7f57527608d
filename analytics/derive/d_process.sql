-- Each process of a rank: who it was, when it lived, how it ended, and the bounds of its steps.
-- What several observers say about one process is merged: its own words first, then its launcher's.
WITH named AS (
    SELECT run_id, attempt, rank, incarnation,
           first(host ORDER BY began_ns) FILTER (WHERE host IS NOT NULL) AS host,
           first(local_rank ORDER BY began_ns) FILTER (WHERE local_rank IS NOT NULL) AS local_rank,
           first(pid ORDER BY began_ns) FILTER (WHERE pid IS NOT NULL) AS pid,
           first(device ORDER BY began_ns) FILTER (WHERE device IS NOT NULL) AS device,
           first(replica_group ORDER BY began_ns) FILTER (WHERE replica_group IS NOT NULL) AS replica_group,
           first(mesh ORDER BY began_ns) FILTER (WHERE mesh IS NOT NULL) AS mesh,
           min(spawn_ns) AS spawn_ns, min(began_ns) AS began_ns,
           first(source_id ORDER BY began_ns) FILTER (WHERE source_id IS NOT NULL) AS source_id
    FROM rank WHERE run_id = $run_id AND rank >= 0 GROUP BY ALL
), work AS (
    SELECT run_id, attempt, rank, incarnation, min(begin_ns) AS first_ns, max(end_ns) AS last_ns,
           min(step) FILTER (WHERE category = 'step') AS first_step,
           max(step) FILTER (WHERE category = 'step') AS last_step,
           min(begin_ns) FILTER (WHERE category = 'step') AS first_step_begin_ns,
           arg_min(end_ns, begin_ns) FILTER (WHERE category = 'step') AS first_step_end_ns
    FROM span WHERE run_id = $run_id AND rank >= 0 GROUP BY ALL
), begun AS (
    SELECT run_id, attempt, rank, incarnation, min(begin_ns) AS first_ns, max(begin_ns) AS last_ns,
           min(step) FILTER (WHERE category = 'step') AS first_step,
           max(step) FILTER (WHERE category = 'step') AS last_step,
           min(begin_ns) FILTER (WHERE category = 'step') AS first_step_begin_ns
    FROM open_span WHERE run_id = $run_id AND rank >= 0 GROUP BY ALL
), beat AS (
    SELECT run_id, attempt, rank, incarnation, max(last_ns) AS last_ns
    FROM heartbeat WHERE run_id = $run_id AND rank >= 0 GROUP BY ALL
), exit_row AS (
    -- A launcher knows a process by its pid, not by its incarnation.
    SELECT e.run_id, e.attempt, e.rank, coalesce(n.incarnation, e.incarnation, 0) AS incarnation,
           e.time_ns, e.exit_code, e.observer, e.host, e.pid
    FROM process_exit e
    LEFT JOIN named n ON n.run_id = e.run_id AND n.attempt = e.attempt AND n.rank = e.rank AND n.pid = e.pid
    WHERE e.run_id = $run_id AND e.rank >= 0
), ended AS (
    -- Who saw it end comes first; the collector only found it gone, and gives its last record's time.
    SELECT run_id, attempt, rank, incarnation,
           coalesce(min(time_ns) FILTER (WHERE observer = 'self'),
                    min(time_ns) FILTER (WHERE observer <> 'collector'), min(time_ns)) AS time_ns,
           first(exit_code ORDER BY observer = 'self', time_ns) FILTER (WHERE exit_code IS NOT NULL) AS exit_code,
           first(observer ORDER BY observer = 'self', observer = 'collector', time_ns) AS observer,
           any_value(host) AS host, any_value(pid) AS pid
    FROM exit_row GROUP BY ALL
), key AS (
    SELECT run_id, attempt, rank, incarnation FROM named
    UNION SELECT run_id, attempt, rank, incarnation FROM work
    UNION SELECT run_id, attempt, rank, incarnation FROM begun
    UNION SELECT run_id, attempt, rank, incarnation FROM ended
), launch AS (
    -- Where a launcher has ended, all processes that it started have too.
    SELECT run_id, launch_id, max(last_ns) AS last_ns
    FROM (
        SELECT a.run_id, a.launch_id, s.complete OR e.run_id IS NOT NULL AS gone,
               greatest(coalesce(h.last_ns, 0), coalesce(e.time_ns, 0)) AS last_ns
        FROM rank r
        JOIN attempt a USING (run_id, attempt)
        LEFT JOIN source s USING (source_id)
        LEFT JOIN heartbeat h USING (source_id)
        LEFT JOIN (SELECT run_id, pid, host, max(time_ns) AS time_ns FROM process_exit
                   WHERE run_id = $run_id AND rank < 0 GROUP BY ALL) e
               ON e.run_id = r.run_id AND e.pid = r.pid AND (e.host IS NULL OR e.host = r.host)
        WHERE r.run_id = $run_id AND r.rank < 0
    ) GROUP BY ALL HAVING bool_and(coalesce(gone, false))
), joined AS (
    SELECT key.*, coalesce(n.replica_group, -1) AS lane, coalesce(n.host, e.host) AS host, n.local_rank,
           coalesce(n.pid, e.pid) AS pid, n.device, n.replica_group, n.mesh, n.source_id,
           n.run_id IS NOT NULL OR w.run_id IS NOT NULL AS described,
           coalesce(n.spawn_ns, n.began_ns, w.first_ns, b.first_ns, a.began_ns, e.time_ns) AS spawn_ns,
           coalesce(n.began_ns, n.spawn_ns, w.first_ns, b.first_ns, e.time_ns) AS began_ns,
           greatest(coalesce(h.last_ns, 0), coalesce(w.last_ns, 0), coalesce(b.last_ns, 0),
                    coalesce(n.began_ns, n.spawn_ns, 0)) AS last_ns,
           e.time_ns AS exit_ns, e.exit_code, e.observer AS exit_observer,
           l.run_id IS NOT NULL OR coalesce(s.complete, false) AS gone,
           least(w.first_step, b.first_step) AS first_step, greatest(w.last_step, b.last_step) AS last_step,
           least(w.first_step_begin_ns, b.first_step_begin_ns) AS first_step_begin_ns,
           CASE WHEN b.first_step_begin_ns < w.first_step_begin_ns THEN NULL ELSE w.first_step_end_ns END
               AS first_step_end_ns
    FROM key
    LEFT JOIN named n USING (run_id, attempt, rank, incarnation)
    LEFT JOIN work w USING (run_id, attempt, rank, incarnation)
    LEFT JOIN begun b USING (run_id, attempt, rank, incarnation)
    LEFT JOIN beat h USING (run_id, attempt, rank, incarnation)
    LEFT JOIN ended e USING (run_id, attempt, rank, incarnation)
    LEFT JOIN attempt a USING (run_id, attempt)
    LEFT JOIN launch l ON l.run_id = key.run_id AND l.launch_id = a.launch_id
    LEFT JOIN source s ON s.source_id = n.source_id
), told AS (
    SELECT j.*, coalesce(c.offset_ns, 0) AS offset_ns,
           lead(spawn_ns) OVER (
               PARTITION BY j.run_id, rank ORDER BY spawn_ns - coalesce(c.offset_ns, 0), attempt, incarnation
           ) AS next_spawn_ns,
           max(attempt) OVER (PARTITION BY j.run_id, lane) AS last_attempt
    FROM joined j LEFT JOIN host_clock c ON c.run_id = j.run_id AND c.host = j.host
)
SELECT run_id, attempt, rank, incarnation, lane, host, local_rank, pid, device, replica_group, mesh, described,
       offset_ns, spawn_ns - offset_ns AS spawn_ns, greatest(began_ns, spawn_ns) - offset_ns AS began_ns,
       CASE
           WHEN exit_ns IS NOT NULL THEN greatest(exit_ns, last_ns, spawn_ns)
           -- Nobody saw it end, but it has: its stream is closed, or the rank has begun again.
           WHEN gone OR next_spawn_ns IS NOT NULL OR attempt < last_attempt THEN greatest(last_ns, spawn_ns)
       END - offset_ns AS ended_ns,
       greatest(last_ns, spawn_ns) - offset_ns AS last_ns,
       exit_code, exit_observer, first_step, last_step,
       first_step_begin_ns - offset_ns AS first_step_begin_ns, first_step_end_ns - offset_ns AS first_step_end_ns,
       source_id
FROM told
