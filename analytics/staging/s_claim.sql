-- What each rule of the time ledger claims for a rank's time, with the record that it rests on. Overlaps are meant:
-- the sweep in derive/d_ledger_interval.sql gives each moment to the first category in the ledger's order.
-- Claims may reach beyond the rank's tile of the plan; the sweep cuts them.
WITH island AS (
    SELECT a.*, min(begin_ns) OVER w AS first_ns, max(end_ns) OVER w AS last_ns
    FROM d_alive a WINDOW w AS (PARTITION BY run_id, scope)
), tile AS (
    SELECT p.*, w.ordinal, w.begin_ns AS window_begin_ns, a.first_ns AS alive_begin_ns, a.last_ns AS alive_end_ns,
           CASE WHEN f.has_lanes THEN -1 ELSE p.attempt END AS scope, f.is_over,
           -- Nothing waits once training has ended for good.
           p.is_last AND f.is_over AND NOT EXISTS (
               SELECT 1 FROM d_incident i WHERE i.run_id = p.run_id AND i.attempt = p.attempt AND i.lane = p.lane
                                            AND i.incarnation = p.incarnation) AS is_done
    FROM d_plan p
    JOIN d_frame f USING (run_id)
    JOIN d_window w USING (run_id, lane, attempt)
    LEFT JOIN (SELECT DISTINCT run_id, scope, first_ns, last_ns FROM island) a
           ON a.run_id = p.run_id AND a.scope = CASE WHEN f.has_lanes THEN -1 ELSE p.attempt END
), failure AS (
    SELECT i.run_id, CASE WHEN f.has_lanes THEN -1 ELSE i.attempt END AS scope, i.began_ns, i.detected_ns
    FROM d_incident i JOIN d_frame f USING (run_id) WHERE i.detected_ns > i.began_ns
), failure_marked AS (
    SELECT *, began_ns > max(detected_ns) OVER (
                  PARTITION BY run_id, scope ORDER BY began_ns, detected_ns
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_new
    FROM failure
), failure_numbered AS (
    SELECT *, sum(CASE WHEN is_new THEN 1 ELSE 0 END) OVER (
                  PARTITION BY run_id, scope ORDER BY began_ns, detected_ns ROWS UNBOUNDED PRECEDING) AS stretch
    FROM failure_marked
), unseen AS (
    -- A failure that nobody has seen yet; where hundreds fail at once, each moment counts once.
    SELECT run_id, scope, stretch, min(began_ns) AS began_ns, max(detected_ns) AS detected_ns
    FROM failure_numbered GROUP BY ALL
), training AS (
    SELECT p.run_id, CASE WHEN f.has_lanes THEN -1 ELSE p.attempt END AS scope, min(p.first_step_begin_ns) AS begin_ns
    FROM d_process p JOIN d_frame f USING (run_id) GROUP BY ALL
), gap AS (
    -- Before its process: at the first launch that is start-up, later it is a restart.
    SELECT run_id, attempt, rank, incarnation, scope, begin_ns, spawn_ns AS end_ns,
           CASE WHEN ordinal = 0 AND is_first THEN 'init' ELSE 'restart' END AS category,
           is_first AS is_unborn
    FROM tile WHERE spawn_ns IS NOT NULL
    UNION ALL
    SELECT run_id, attempt, rank, incarnation, scope, ended_ns, end_ns,
           CASE WHEN is_done THEN NULL ELSE 'restart' END, false
    FROM tile WHERE spawn_ns IS NOT NULL
    UNION ALL
    -- A silent rank: what it did while others of its attempt lived, nobody told.
    SELECT run_id, attempt, rank, incarnation, NULL, begin_ns, coalesce(alive_begin_ns, end_ns),
           CASE WHEN ordinal = 0 THEN 'init' ELSE 'restart' END, true
    FROM tile WHERE spawn_ns IS NULL
    UNION ALL
    SELECT run_id, attempt, rank, incarnation, NULL, alive_end_ns, end_ns,
           CASE WHEN is_done THEN NULL ELSE 'restart' END, false
    FROM tile WHERE spawn_ns IS NULL AND alive_end_ns IS NOT NULL
), step AS (
    SELECT s.*, r.reference_step_ns FROM s_step s LEFT JOIN d_reference r USING (run_id)
)
SELECT t.run_id, t.attempt, t.rank, t.incarnation, 'queue' AS category, NULL::BIGINT AS step,
       (a.attrs ->> 'queued_ns')::BIGINT AS begin_ns, (a.attrs ->> 'allocated_ns')::BIGINT AS end_ns,
       'a scheduler had no allocation' AS rule, NULL::BIGINT AS source_id
FROM tile t JOIN attempt a USING (run_id, attempt) WHERE (a.attrs ->> 'queued_ns') IS NOT NULL
UNION ALL
-- Without its process, while others of its attempt go on. A rank that has not come up yet is missed from the
-- moment that training goes on without it.
SELECT g.run_id, g.attempt, g.rank, g.incarnation, 'absent', NULL,
       greatest(g.begin_ns, i.begin_ns, CASE WHEN g.is_unborn THEN coalesce(t.begin_ns, i.end_ns) ELSE i.begin_ns END),
       least(g.end_ns, i.end_ns), 'no process, others go on', NULL
FROM gap g JOIN d_alive i USING (run_id, scope) LEFT JOIN training t USING (run_id, scope)
UNION ALL
SELECT run_id, attempt, rank, incarnation, category, NULL, begin_ns, end_ns,
       CASE category WHEN 'init' THEN 'launched, not yet started' ELSE 'no process, nobody goes on' END, NULL
FROM gap WHERE category IS NOT NULL
UNION ALL
SELECT t.run_id, t.attempt, t.rank, t.incarnation, 'detect', NULL, i.began_ns, t.ended_ns,
       'failed, its process not yet gone', NULL
FROM tile t
JOIN d_incident i ON i.run_id = t.run_id AND i.attempt = t.attempt AND i.incarnation = t.incarnation
                 AND i.lane = t.lane AND i.root_rank = t.rank
WHERE t.spawn_ns <= i.began_ns AND t.ended_ns > i.began_ns
UNION ALL
SELECT t.run_id, t.attempt, t.rank, t.incarnation, 'detect', NULL, u.began_ns, least(u.detected_ns, t.ended_ns),
       'a rank had failed, nobody knew yet', NULL
FROM tile t JOIN unseen u USING (run_id, scope)
WHERE t.spawn_ns <= u.began_ns AND t.ended_ns > u.began_ns
UNION ALL
SELECT run_id, attempt, rank, incarnation, category, step, begin_ns, end_ns, 'span ' || category, source_id
FROM s_span WHERE category IN ('quorum', 'reconfigure', 'heal') AND thread = 0
UNION ALL
SELECT run_id, attempt, rank, incarnation, 'lost', step, begin_ns, end_ns, 'step ' || lost_reason, source_id
FROM step WHERE NOT kept
UNION ALL
-- The wait for a lost step's batch is lost with it; so is one for a step that never began.
SELECT w.run_id, w.attempt, w.rank, w.incarnation, 'lost', w.step, w.begin_ns, w.end_ns, 'data wait of a lost step',
       w.source_id
FROM s_span w
JOIN d_process p USING (run_id, attempt, rank, incarnation)
LEFT JOIN s_step s USING (run_id, attempt, rank, incarnation, step)
WHERE w.category = 'data_wait' AND w.thread = 0
  AND (NOT s.kept OR s.kept IS NULL AND w.step IS NOT NULL AND p.ended_ns IS NOT NULL
       AND EXISTS (SELECT 1 FROM d_incident i WHERE i.run_id = w.run_id AND i.attempt = w.attempt AND i.lane = p.lane
                                                AND i.incarnation = w.incarnation))
UNION ALL
SELECT run_id, attempt, rank, incarnation, 'init', NULL, spawn_ns, coalesce(first_step_begin_ns, ended_ns, last_moment_ns),
       'process start to first step', source_id
FROM (SELECT p.*, f.end_ns AS last_moment_ns FROM d_process p JOIN d_frame f USING (run_id))
UNION ALL
SELECT run_id, attempt, rank, incarnation, 'init', step, begin_ns, end_ns - reference_step_ns,
       'first step, beyond the reference step', source_id
FROM step WHERE is_first AND end_ns - begin_ns > reference_step_ns
UNION ALL
SELECT run_id, attempt, rank, incarnation, CASE category WHEN 'eval' THEN 'eval' ELSE 'checkpoint' END, step,
       begin_ns, end_ns, 'span ' || category, source_id
FROM s_span WHERE category IN ('checkpoint_save', 'eval') AND thread = 0
UNION ALL
SELECT run_id, attempt, rank, incarnation, 'data_wait', step, begin_ns, end_ns, 'span data_wait', source_id
FROM s_span WHERE category = 'data_wait' AND thread = 0
UNION ALL
SELECT run_id, attempt, rank, incarnation, 'straggler_wait', step, begin_ns, end_ns, 'waited in ' || pg || ' #' || seq,
       source_id
FROM s_wait
UNION ALL
SELECT run_id, attempt, rank, incarnation, 'stall', step, begin_ns + reference_step_ns, end_ns,
       'step beyond 3 reference steps', source_id
FROM step WHERE kept AND end_ns - begin_ns > 3 * reference_step_ns
UNION ALL
SELECT run_id, attempt, rank, incarnation, 'productive', step, begin_ns, end_ns,
       CASE WHEN is_open THEN 'step going on' ELSE 'step kept' END, source_id
FROM step WHERE kept
