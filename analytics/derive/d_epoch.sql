-- Which steps of a process still count. Without replica groups every attempt is an epoch; with them, one begins
-- when nobody was left alive, for as long as one group lives the training does not fall back.
-- A resume at step s takes back all of the earlier epochs' steps from s on: at 0, all of them.
WITH placed AS (
    SELECT p.run_id, p.attempt, p.rank, p.incarnation, p.first_step,
           CASE WHEN f.has_lanes THEN a.island ELSE w.ordinal END AS epoch
    FROM d_process p
    JOIN d_frame f USING (run_id)
    JOIN d_window w USING (run_id, lane, attempt)
    LEFT JOIN d_alive a ON f.has_lanes AND a.run_id = p.run_id AND p.spawn_ns BETWEEN a.begin_ns AND a.end_ns
    WHERE p.run_id = $run_id
), resumed AS (
    SELECT run_id, epoch, min(first_step) AS first_step FROM placed GROUP BY ALL
), bounded AS (
    SELECT run_id, epoch,
           min(first_step) OVER (PARTITION BY run_id ORDER BY epoch ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
               AS kept_below
    FROM resumed
)
SELECT p.run_id, p.attempt, p.rank, p.incarnation, p.epoch, b.kept_below
FROM placed p JOIN bounded b USING (run_id, epoch)
