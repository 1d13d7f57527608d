-- Steps with what became of them. kept: the update was applied (or, where nobody said, the step ended well) and
-- was never rolled back; the open step of a living process is kept provisionally.
SELECT s.run_id, s.attempt, s.rank, s.incarnation, s.step, s.begin_ns, s.end_ns, s.committed, s.status, s.is_open,
       s.source_id, e.epoch,
       s.begin_ns = p.first_step_begin_ns AS is_first,
       CASE
           WHEN s.status = 'open' THEN true
           WHEN s.is_open OR NOT coalesce(s.committed, s.status = 'ok') THEN false
           ELSE s.step IS NULL OR e.kept_below IS NULL OR s.step < e.kept_below
       END AS kept,
       CASE
           WHEN s.status = 'open' THEN NULL
           WHEN s.is_open THEN 'in flight'
           WHEN NOT coalesce(s.committed, s.status = 'ok') THEN 'not committed'
           WHEN s.step >= e.kept_below THEN 'rolled back'
       END AS lost_reason
FROM s_span s
JOIN d_process p USING (run_id, attempt, rank, incarnation)
JOIN d_epoch e USING (run_id, attempt, rank, incarnation)
WHERE s.category = 'step'
