-- planned(t) is the latest attempt's world size: ranks 0 to world_size - 1, and every rank that showed itself.
-- Within an attempt's window a rank's time is cut at the ends of its processes, so that each tile holds one.
WITH member AS (
    SELECT run_id, lane, attempt, rank, incarnation, host, replica_group, spawn_ns, ended_ns
    FROM d_process WHERE run_id = $run_id
    UNION ALL
    -- Planned, and silent: no process of it is known.
    SELECT w.run_id, w.lane, w.attempt, planned.rank, 0, NULL, NULL, NULL, NULL
    FROM d_window w JOIN d_frame f USING (run_id), generate_series(0, w.world_size - 1) AS planned(rank)
    WHERE w.run_id = $run_id AND NOT f.has_lanes
      AND NOT EXISTS (SELECT 1 FROM d_process p
                      WHERE p.run_id = w.run_id AND p.attempt = w.attempt AND p.rank = planned.rank)
), placed AS (
    SELECT m.*, w.begin_ns AS window_begin_ns, w.end_ns AS window_end_ns, w.ordinal, w.is_last AS in_last_window,
           CASE WHEN m.spawn_ns IS NOT NULL THEN greatest(least(m.spawn_ns, w.end_ns), w.begin_ns) END AS spawn_cut_ns,
           CASE WHEN m.spawn_ns IS NOT NULL
                THEN greatest(least(coalesce(m.ended_ns, f.end_ns), w.end_ns), least(m.spawn_ns, w.end_ns), w.begin_ns)
           END AS ended_cut_ns
    FROM member m JOIN d_window w USING (run_id, lane, attempt) JOIN d_frame f USING (run_id)
), cut AS (
    SELECT *, row_number() OVER w AS place,
           -- Where two processes of a rank overlap, the later one has the time from its start.
           CASE WHEN lag(ended_cut_ns) OVER w IS NOT NULL THEN least(lag(ended_cut_ns) OVER w, spawn_cut_ns) END AS cut_ns,
           lead(rank) OVER w IS NULL AS last_here
    FROM placed WINDOW w AS (PARTITION BY run_id, attempt, rank ORDER BY spawn_cut_ns, incarnation)
), tile AS (
    SELECT *, coalesce(cut_ns, window_begin_ns) AS begin_ns,
           coalesce(lead(cut_ns) OVER (PARTITION BY run_id, attempt, rank ORDER BY place), window_end_ns) AS end_ns
    FROM cut
)
SELECT run_id, attempt, rank, incarnation, lane, host, replica_group, begin_ns, end_ns,
       spawn_cut_ns AS spawn_ns, CASE WHEN ended_cut_ns IS NOT NULL THEN least(ended_cut_ns, end_ns) END AS ended_ns,
       place = 1 AS is_first, in_last_window AND last_here AS is_last
FROM tile
