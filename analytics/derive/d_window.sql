-- The stretch of time that counts as an attempt's own: from the end of the one before it (so a gap belongs to
-- the attempt that follows) to its last process' end; the first reaches back and the last on to the run's ends.
WITH lived AS (
    SELECT p.run_id, p.lane, p.attempt, min(p.spawn_ns) AS spawn_ns,
           max(greatest(coalesce(p.ended_ns, f.end_ns), p.spawn_ns)) AS ended_ns
    FROM d_process p JOIN d_frame f USING (run_id) WHERE p.run_id = $run_id GROUP BY ALL
), launched AS (
    SELECT * FROM lived
    UNION ALL
    -- A launch whose ranks never showed themselves.
    SELECT a.run_id, -1, a.attempt, a.began_ns, a.began_ns
    FROM attempt a JOIN d_frame f USING (run_id)
    WHERE a.run_id = $run_id AND NOT f.has_lanes AND a.began_ns IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM lived l WHERE l.run_id = a.run_id AND l.attempt = a.attempt)
), bounded AS (
    SELECT *, row_number() OVER w - 1 AS ordinal,
           CASE WHEN lag(ended_ns) OVER w IS NOT NULL THEN least(lag(ended_ns) OVER w, spawn_ns) END AS begin_ns
    FROM launched WINDOW w AS (PARTITION BY run_id, lane ORDER BY spawn_ns, attempt)
)
SELECT b.run_id, b.lane, b.attempt, b.ordinal, lead(b.attempt) OVER w IS NULL AS is_last, a.world_size,
       coalesce(b.begin_ns, f.begin_ns) AS begin_ns, coalesce(lead(b.begin_ns) OVER w, f.end_ns) AS end_ns
FROM bounded b JOIN d_frame f USING (run_id) LEFT JOIN attempt a USING (run_id, attempt)
WINDOW w AS (PARTITION BY b.run_id, b.lane ORDER BY b.ordinal)
