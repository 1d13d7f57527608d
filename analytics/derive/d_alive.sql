-- Stretches in which somebody of the attempt lives; with replica groups, somebody of the run: there a group
-- goes on without the others, whatever attempt its launcher counts.
WITH life AS (
    SELECT p.run_id, CASE WHEN f.has_lanes THEN -1 ELSE p.attempt END AS scope,
           p.spawn_ns AS begin_ns, greatest(coalesce(p.ended_ns, f.end_ns), p.spawn_ns) AS end_ns
    FROM d_process p JOIN d_frame f USING (run_id) WHERE p.run_id = $run_id
), marked AS (
    SELECT *, begin_ns > max(end_ns) OVER (
               PARTITION BY run_id, scope ORDER BY begin_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS is_new
    FROM life
), numbered AS (
    SELECT *, sum(CASE WHEN is_new THEN 1 ELSE 0 END) OVER (
               PARTITION BY run_id, scope ORDER BY begin_ns, end_ns ROWS UNBOUNDED PRECEDING
           ) AS island
    FROM marked
)
SELECT run_id, scope, island, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns FROM numbered GROUP BY ALL
