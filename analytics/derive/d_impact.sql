-- What each incident cost: ranks held up and started again, steps thrown away, and how long recovery's parts took
-- on the slowest rank. With replica groups an incident touches other groups too, so steps count by time there.
WITH incident AS (
    SELECT i.*, f.has_lanes, coalesce(i.recovered_ns, f.end_ns) AS until_ns
    FROM d_incident i JOIN d_frame f USING (run_id) WHERE i.run_id = $run_id
), lost AS (
    SELECT i.incident_id, s.rank, s.attempt, s.step
    FROM incident i JOIN s_step s USING (run_id)
    WHERE s.lost_reason IS NOT NULL
      AND CASE WHEN i.has_lanes THEN s.end_ns >= i.began_ns AND s.begin_ns <= i.until_ns ELSE s.attempt = i.attempt END
), lost_steps AS (
    SELECT incident_id, count(DISTINCT (attempt, step)) AS steps_lost FROM lost GROUP BY ALL
), held AS (
    SELECT incident_id, list(rank ORDER BY rank) AS ranks
    FROM (SELECT incident_id, rank FROM lost
          UNION
          -- Ranks of the unit that failed wait, whatever step they were in.
          SELECT i.incident_id, p.rank FROM incident i JOIN d_plan p USING (run_id, attempt, lane)
          WHERE NOT i.has_lanes OR p.incarnation = i.incarnation)
    GROUP BY ALL
), restarted AS (
    SELECT i.incident_id, list(DISTINCT p.rank ORDER BY p.rank) AS ranks
    FROM incident i
    JOIN d_process p ON p.run_id = i.run_id AND p.lane = i.lane AND p.attempt = i.next_attempt
                    AND p.incarnation = i.next_incarnation
    GROUP BY ALL
), blocked AS (
    SELECT i.incident_id, s.rank, s.category, sum(least(s.end_ns, i.until_ns) - greatest(s.begin_ns, i.began_ns)) AS ns
    FROM incident i JOIN s_span s USING (run_id)
    WHERE s.category IN ('quorum', 'reconfigure', 'heal') AND s.thread = 0
      AND s.end_ns > i.began_ns AND s.begin_ns < i.until_ns
    GROUP BY ALL
), recovery AS (
    SELECT incident_id, max(ns) FILTER (WHERE category = 'quorum') AS quorum_ns,
           max(ns) FILTER (WHERE category = 'reconfigure') AS reconfigure_ns,
           max(ns) FILTER (WHERE category = 'heal') AS heal_ns
    FROM blocked GROUP BY ALL
), commit_time AS (
    SELECT DISTINCT s.end_ns FROM s_step s
    WHERE s.run_id = $run_id AND coalesce(s.committed, s.status = 'ok') AND NOT s.is_open
), paused AS (
    SELECT i.incident_id, min(c.end_ns) FILTER (WHERE c.end_ns > i.began_ns) - max(c.end_ns) FILTER (WHERE c.end_ns <= i.began_ns) AS ns
    FROM incident i, commit_time c GROUP BY ALL
), hung AS (
    -- The collective that most of the survivors were in.
    SELECT i.incident_id, c.pg, c.seq, count(DISTINCT c.rank) AS ranks, any_value(g.ranks) AS members,
           list(DISTINCT c.rank) AS joined
    FROM incident i
    JOIN collective c USING (run_id, attempt)
    LEFT JOIN (SELECT run_id, attempt, pg, any_value(ranks) AS ranks FROM process_group GROUP BY ALL) g
           ON g.run_id = c.run_id AND g.attempt = c.attempt AND g.pg = c.pg
    WHERE c.end_ns IS NULL OR c.state = 'error'
    GROUP BY i.incident_id, c.pg, c.seq
    QUALIFY row_number() OVER (PARTITION BY i.incident_id ORDER BY count(DISTINCT c.rank) DESC, c.pg, c.seq) = 1
)
SELECT i.run_id, i.incident_id, coalesce(h.ranks, []) AS held_ranks, coalesce(r.ranks, []) AS restarted_ranks,
       coalesce(l.steps_lost, 0) AS steps_lost,
       v.quorum_ns, v.reconfigure_ns, v.heal_ns, i.next_spawn_ns - i.ended_ns AS restart_ns,
       greatest(p.ns - e.reference_step_ns, 0) AS stall_ns, c.pg, c.seq,
       list_sort(list_filter(coalesce(c.members, []), lambda member: NOT list_contains(c.joined, member))) AS missing_ranks,
       NOT EXISTS (SELECT 1 FROM d_incident o WHERE o.run_id = i.run_id AND o.incident_id <> i.incident_id
                      AND o.began_ns BETWEEN i.began_ns AND i.until_ns) AND i.has_lanes AS is_isolated
FROM incident i
LEFT JOIN held h USING (incident_id)
LEFT JOIN restarted r USING (incident_id)
LEFT JOIN lost_steps l USING (incident_id)
LEFT JOIN recovery v USING (incident_id)
LEFT JOIN paused p USING (incident_id)
LEFT JOIN hung c USING (incident_id)
LEFT JOIN d_reference e USING (run_id)
