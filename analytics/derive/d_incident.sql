-- One incident per unit (attempt; with replica groups, one group's incarnation) that ended by failure: a process of
-- it ended badly, or it ended in the middle of a step and training was begun again. Ends that somebody asked for
-- (a 'planned' signal, an interrupt, a SIGTERM for all that nothing followed) are none.
WITH unit AS (
    SELECT run_id, attempt, lane, incarnation, min(spawn_ns) AS spawn_ns, max(ended_ns) AS ended_ns,
           bool_and(ended_ns IS NOT NULL) AS is_over, bool_or(coalesce(exit_code, 0) <> 0) AS bad_exit,
           bool_and(coalesce(exit_code, 1) = 0) AS is_clean
    FROM d_process WHERE run_id = $run_id GROUP BY ALL
), followed AS (
    SELECT u.*, a.launch_id, lead(attempt) OVER w AS next_attempt, lead(incarnation) OVER w AS next_incarnation,
           lead(spawn_ns) OVER w AS next_spawn_ns, lead(a.launch_id) OVER w AS next_launch_id
    FROM unit u LEFT JOIN attempt a USING (run_id, attempt)
    WINDOW w AS (PARTITION BY u.run_id, lane ORDER BY spawn_ns, attempt, incarnation)
), cut AS (
    SELECT run_id, attempt, lane, incarnation, count(*) AS steps
    FROM s_step JOIN d_process USING (run_id, attempt, rank, incarnation)
    WHERE run_id = $run_id AND s_step.lost_reason = 'in flight' GROUP BY ALL
), spoken AS (
    SELECT run_id, attempt, lane, incarnation, max(weight) AS weight,
           bool_or(failure_kind = 'planned') AS planned, bool_or(exit_code = -2) AS interrupted,
           min(time_ns) FILTER (WHERE weight >= 10) AS first_ns
    FROM d_evidence WHERE run_id = $run_id GROUP BY ALL
), failed AS (
    SELECT f.*, s.first_ns
    FROM followed f
    LEFT JOIN spoken s USING (run_id, attempt, lane, incarnation)
    LEFT JOIN cut c USING (run_id, attempt, lane, incarnation)
    WHERE NOT coalesce(s.planned, false) AND NOT (coalesce(s.interrupted, false) AND coalesce(s.weight, 0) < 50)
      AND (f.bad_exit AND s.weight >= 10
           OR f.bad_exit AND f.next_launch_id = f.launch_id -- the launcher itself took it for a failure
           -- No exit was seen, yet it broke off: an error told so, or a step that never ended.
           OR f.is_over AND NOT f.is_clean AND (s.weight >= 80 OR c.steps > 0 AND coalesce(s.weight, 0) < 5))
), root AS (
    SELECT f.run_id, f.attempt, f.lane, f.incarnation, e.rank, e.host, e.weight, e.kind, e.failure_kind, e.message,
           e.exit_code, e.time_ns
    FROM failed f JOIN d_evidence e USING (run_id, attempt, lane, incarnation)
    WHERE e.rank IS NOT NULL AND (e.weight >= 50 OR e.weight = 5 AND f.first_ns IS NULL)
    QUALIFY row_number() OVER (
        PARTITION BY f.run_id, f.attempt, f.lane, f.incarnation ORDER BY e.weight DESC, e.time_ns, e.rank) = 1
), began AS (
    SELECT f.*, r.rank AS root_rank, r.host AS root_host, coalesce(r.weight, 0) AS root_weight, r.kind AS root_kind,
           r.failure_kind, r.message, r.exit_code, p.last_ns AS root_last_ns, p.ended_ns AS root_ended_ns,
           p.replica_group AS root_group,
           least(r.time_ns, p.ended_ns, f.first_ns, f.ended_ns) AS began_ns
    FROM failed f
    LEFT JOIN root r USING (run_id, attempt, lane, incarnation)
    LEFT JOIN d_process p ON p.run_id = f.run_id AND p.attempt = f.attempt AND p.incarnation = f.incarnation
                         AND p.rank = r.rank
), detected AS (
    SELECT b.run_id, b.attempt, b.lane, b.incarnation, min(greatest(e.observed_ns, b.began_ns)) AS detected_ns,
           bool_or(e.failure_kind = 'out_of_memory' AND (e.rank = b.root_rank OR e.rank IS NULL)) AS is_memory
    FROM began b JOIN d_evidence e USING (run_id, attempt, lane, incarnation)
    WHERE NOT (e.rank IS NOT DISTINCT FROM b.root_rank AND coalesce(e.observer, 'self') IN ('self', 'rank'))
      AND e.weight > 0
    GROUP BY ALL
), committing AS (
    -- Back at full strength: every planned rank of the unit has committed a step.
    SELECT p.run_id, p.lane, p.attempt, p.incarnation, p.spawn_ns, min(s.end_ns) AS end_ns
    FROM d_plan p
    LEFT JOIN s_step s ON s.run_id = p.run_id AND s.attempt = p.attempt AND s.rank = p.rank
                      AND s.incarnation = p.incarnation AND coalesce(s.committed, s.status = 'ok') AND NOT s.is_open
    WHERE p.run_id = $run_id GROUP BY ALL
), full_strength AS (
    SELECT run_id, lane, attempt, incarnation, min(spawn_ns) AS spawn_ns, max(end_ns) AS end_ns
    FROM committing GROUP BY ALL HAVING bool_and(end_ns IS NOT NULL)
)
SELECT b.run_id, row_number() OVER (PARTITION BY b.run_id ORDER BY b.began_ns, b.attempt, b.lane, b.incarnation)
           AS incident_id,
       b.attempt, b.lane, b.incarnation,
       least(b.root_last_ns, b.began_ns) AS began_low_ns, b.began_ns,
       coalesce(d.detected_ns, b.root_ended_ns, b.ended_ns) AS detected_ns, b.ended_ns,
       (SELECT min(f.end_ns) FROM full_strength f
        WHERE f.run_id = b.run_id AND f.lane = b.lane AND f.spawn_ns >= b.next_spawn_ns) AS recovered_ns,
       b.next_attempt, b.next_incarnation, b.next_spawn_ns,
       CASE WHEN b.root_rank IS NULL THEN 'unknown' WHEN d.is_memory THEN 'out_of_memory'
            WHEN b.root_kind = 'xid' THEN 'hardware' ELSE coalesce(b.failure_kind, 'exception') END AS kind,
       CASE WHEN b.root_weight >= 90 THEN 0.95 WHEN b.root_weight >= 80 THEN 0.85 WHEN b.root_weight >= 50 THEN 0.6
            WHEN b.root_weight > 0 THEN 0.4 ELSE 0.2 END AS confidence,
       b.root_rank, b.root_host, b.root_weight, b.root_kind, b.message AS root_message, b.exit_code AS root_exit_code,
       b.root_group AS replica_group
FROM began b LEFT JOIN detected d USING (run_id, attempt, lane, incarnation)
WHERE b.began_ns IS NOT NULL
