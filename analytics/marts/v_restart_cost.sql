-- What a recovery's parts took: one row per incident and part, in order of time; the parts touch each other.
--   part: detect: failure to first observation; teardown: to the last process' end; restart: to the next one's start; init: to its first step; redo: until the step that was in flight is done
--   ordinal: Place in time
--   next_attempt: The attempt that followed
--   seconds [s]: How long it took
WITH incident AS (
    SELECT i.*, max(p.first_step_begin_ns) AS init_end_ns
    FROM d_incident i
    LEFT JOIN d_process p ON p.run_id = i.run_id AND p.lane = i.lane AND p.attempt = i.next_attempt
                         AND p.incarnation = i.next_incarnation
    GROUP BY ALL
), redone AS (
    -- Back where it was: the next attempt ends a step with the number of the last one begun before the failure.
    SELECT i.run_id, i.incident_id, min(s.end_ns) AS end_ns
    FROM d_incident i
    JOIN (SELECT run_id, attempt, lane, incarnation, max(last_step) AS last_step FROM d_process GROUP BY ALL) b
        USING (run_id, attempt, lane, incarnation)
    JOIN d_step_summary s ON s.run_id = i.run_id AND s.attempt = i.next_attempt AND s.step >= b.last_step
                         AND s.end_ns > i.began_ns AND NOT s.is_open
    GROUP BY ALL
), bound AS (
    SELECT i.run_id, i.incident_id, i.next_attempt,
           [i.began_ns, greatest(i.detected_ns, i.began_ns), greatest(i.ended_ns, i.detected_ns, i.began_ns),
            i.next_spawn_ns, i.init_end_ns, r.end_ns] AS times
    FROM incident i LEFT JOIN redone r USING (run_id, incident_id)
), part AS (
    SELECT run_id, incident_id, next_attempt, unnest(['detect', 'teardown', 'restart', 'init', 'redo']) AS part,
           unnest(range(5))::INTEGER AS ordinal, times
    FROM bound
)
SELECT run_id, incident_id, part, ordinal, next_attempt, times[ordinal + 1] AS begin_ns, times[ordinal + 2] AS end_ns,
       greatest(times[ordinal + 2] - times[ordinal + 1], 0) / 1e9 AS seconds
FROM part WHERE times[ordinal + 1] IS NOT NULL AND times[ordinal + 2] IS NOT NULL
