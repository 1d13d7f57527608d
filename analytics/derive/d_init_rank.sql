-- A rank's start-up, exclusive: phases nest (the store inside the process group), and a moment belongs to the
-- innermost. The innermost-first order of phases decides, as the ledger's order does. What no phase covers up to the
-- first step is 'other'; first_step is the excess of the first step over the reference step; launch is what passed
-- from the run's first moment until the rank's process was started.
WITH phase AS (
    SELECT * FROM (VALUES ('communicator', 0, 6), ('store', 1, 3), ('checkpoint_load', 2, 8), ('rendezvous', 3, 2),
                          ('process_group', 4, 4), ('first_batch', 5, 9), ('model', 6, 7), ('import', 7, 1),
                          ('spawn', 8, 0), ('first_step', 9, 10), ('other', 10, 11),
                          ('launch', 11, -1)) AS v(phase, depth, ordinal)
), frame AS (
    SELECT p.run_id, p.attempt, p.rank, p.incarnation, p.spawn_ns,
           coalesce(p.first_step_begin_ns, p.ended_ns, f.end_ns) AS begun_ns,
           coalesce(p.first_step_end_ns - r.reference_step_ns, 0) AS warm_ns
    FROM d_process p JOIN d_frame f USING (run_id) LEFT JOIN d_reference r USING (run_id)
    WHERE p.run_id = $run_id
), claim AS (
    SELECT s.attempt, s.rank, s.incarnation, CASE s.category WHEN 'checkpoint_load' THEN 'checkpoint_load'
                                                             WHEN 'data_wait' THEN 'first_batch' ELSE s.name END AS phase,
           greatest(s.begin_ns, f.spawn_ns) AS begin_ns, least(s.end_ns, greatest(f.begun_ns, f.warm_ns)) AS end_ns
    FROM s_span s JOIN frame f USING (run_id, attempt, rank, incarnation)
    WHERE s.run_id = $run_id AND s.category IN ('init', 'checkpoint_load', 'data_wait') AND s.begin_ns < greatest(f.begun_ns, f.warm_ns)
    UNION ALL
    SELECT attempt, rank, incarnation, 'other', spawn_ns, begun_ns FROM frame
    UNION ALL
    SELECT attempt, rank, incarnation, 'first_step', begun_ns, warm_ns FROM frame
    UNION ALL
    SELECT p.attempt, p.rank, p.incarnation, 'launch', p.begin_ns, p.spawn_ns
    FROM d_plan p JOIN d_window w USING (run_id, lane, attempt)
    WHERE p.run_id = $run_id AND w.ordinal = 0 AND p.is_first AND p.spawn_ns IS NOT NULL
), edge AS (
    SELECT attempt, rank, incarnation, begin_ns AS t, depth, 1 AS delta FROM claim JOIN phase USING (phase) WHERE begin_ns < end_ns
    UNION ALL
    SELECT attempt, rank, incarnation, end_ns, depth, -1 FROM claim JOIN phase USING (phase) WHERE begin_ns < end_ns
), point AS (
    SELECT attempt, rank, incarnation, t,
           sum(CASE WHEN depth = 0 THEN delta ELSE 0 END) AS d0, sum(CASE WHEN depth = 1 THEN delta ELSE 0 END) AS d1,
           sum(CASE WHEN depth = 2 THEN delta ELSE 0 END) AS d2, sum(CASE WHEN depth = 3 THEN delta ELSE 0 END) AS d3,
           sum(CASE WHEN depth = 4 THEN delta ELSE 0 END) AS d4, sum(CASE WHEN depth = 5 THEN delta ELSE 0 END) AS d5,
           sum(CASE WHEN depth = 6 THEN delta ELSE 0 END) AS d6, sum(CASE WHEN depth = 7 THEN delta ELSE 0 END) AS d7,
           sum(CASE WHEN depth = 8 THEN delta ELSE 0 END) AS d8, sum(CASE WHEN depth = 9 THEN delta ELSE 0 END) AS d9,
           sum(CASE WHEN depth = 10 THEN delta ELSE 0 END) AS d10,
           sum(CASE WHEN depth = 11 THEN delta ELSE 0 END) AS d11
    FROM edge GROUP BY ALL
), swept AS (
    SELECT attempt, rank, incarnation, t AS begin_ns, lead(t) OVER w AS end_ns,
           CASE WHEN sum(d0) OVER w > 0 THEN 0 WHEN sum(d1) OVER w > 0 THEN 1 WHEN sum(d2) OVER w > 0 THEN 2
                WHEN sum(d3) OVER w > 0 THEN 3 WHEN sum(d4) OVER w > 0 THEN 4 WHEN sum(d5) OVER w > 0 THEN 5
                WHEN sum(d6) OVER w > 0 THEN 6 WHEN sum(d7) OVER w > 0 THEN 7 WHEN sum(d8) OVER w > 0 THEN 8
                WHEN sum(d9) OVER w > 0 THEN 9 WHEN sum(d10) OVER w > 0 THEN 10
                WHEN sum(d11) OVER w > 0 THEN 11 END AS depth
    FROM point WINDOW w AS (PARTITION BY attempt, rank, incarnation ORDER BY t ROWS UNBOUNDED PRECEDING)
)
SELECT $run_id AS run_id, s.attempt, s.rank, s.incarnation, p.phase, p.ordinal,
       min(s.begin_ns) AS begin_ns, max(s.end_ns) AS end_ns, sum(s.end_ns - s.begin_ns)::BIGINT AS duration_ns
FROM swept s JOIN phase p USING (depth) WHERE s.end_ns IS NOT NULL GROUP BY ALL
