-- Spans of ranks on the run's reference clock; those begun and never ended reach to their process' end.
SELECT s.run_id, s.attempt, s.rank, s.incarnation, s.category, s.name, s.step, s.committed,
       s.begin_ns - p.offset_ns AS begin_ns, s.end_ns - p.offset_ns AS end_ns,
       s.status, coalesce(s.thread, 0) AS thread, s.attrs, s.source_id, false AS is_open
FROM span s JOIN d_process p USING (run_id, attempt, rank, incarnation)
UNION ALL
SELECT s.run_id, s.attempt, s.rank, s.incarnation, s.category, s.name, s.step, NULL,
       s.begin_ns - p.offset_ns, greatest(coalesce(p.ended_ns, f.end_ns), s.begin_ns - p.offset_ns),
       CASE WHEN p.ended_ns IS NULL THEN 'open' ELSE 'error' END, coalesce(s.thread, 0), s.attrs, s.source_id, true
FROM open_span s
JOIN d_process p USING (run_id, attempt, rank, incarnation)
JOIN d_frame f USING (run_id)
