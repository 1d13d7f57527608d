-- A run's first and last moment. The first: an allocation that a scheduler recorded, else the first sign of a
-- launcher or rank. The last: the last record of anybody; while the run goes on, that is the watermark.
WITH launcher AS (
    SELECT r.run_id, min(coalesce(r.spawn_ns, r.began_ns) - coalesce(c.offset_ns, 0)) AS begin_ns,
           max(greatest(coalesce(h.last_ns, r.began_ns), e.time_ns) - coalesce(c.offset_ns, 0)) AS end_ns,
           bool_and(coalesce(s.complete, false) OR e.run_id IS NOT NULL) AS gone
    FROM rank r
    LEFT JOIN source s USING (source_id)
    LEFT JOIN heartbeat h USING (source_id)
    LEFT JOIN host_clock c ON c.run_id = r.run_id AND c.host = r.host
    LEFT JOIN (SELECT run_id, pid, host, max(time_ns) AS time_ns FROM process_exit
               WHERE run_id = $run_id AND rank < 0 GROUP BY ALL) e
           ON e.run_id = r.run_id AND e.pid = r.pid AND (e.host IS NULL OR e.host = r.host)
    WHERE r.run_id = $run_id AND r.rank < 0 GROUP BY ALL
), process AS (
    SELECT run_id, min(spawn_ns) AS begin_ns, max(greatest(coalesce(ended_ns, last_ns), last_ns)) AS end_ns,
           bool_and(ended_ns IS NOT NULL) AS gone, bool_or(lane >= 0) AS has_lanes
    FROM d_process WHERE run_id = $run_id GROUP BY ALL
), launch AS (
    SELECT run_id, min(began_ns) AS begin_ns, max(began_ns) AS end_ns,
           min((attrs ->> 'allocated_ns')::BIGINT) FILTER (WHERE attempt = 0) AS allocated_ns
    FROM attempt WHERE run_id = $run_id GROUP BY ALL
)
SELECT $run_id AS run_id,
       coalesce(a.allocated_ns, least(l.begin_ns, p.begin_ns, a.begin_ns)) AS begin_ns,
       greatest(l.end_ns, p.end_ns, a.end_ns) AS end_ns,
       coalesce(p.gone, true) AND coalesce(l.gone, true) AND (p.run_id IS NOT NULL OR l.run_id IS NOT NULL) AS is_over,
       coalesce(p.has_lanes, false) AS has_lanes
FROM (SELECT $run_id AS run_id) r
LEFT JOIN launcher l USING (run_id)
LEFT JOIN process p USING (run_id)
LEFT JOIN launch a USING (run_id)
WHERE coalesce(l.begin_ns, p.begin_ns, a.begin_ns) IS NOT NULL
