-- The run in one row: its outcome and its ratios' parts.
WITH ledger AS (
    SELECT coalesce(sum(ns), 0) AS planned_ns, sum(ns) FILTER (WHERE category = 'queue') AS queue_ns,
           sum(ns) FILTER (WHERE category = 'absent') AS absent_ns,
           sum(ns) FILTER (WHERE category IN ('productive', 'straggler_wait', 'data_wait')) AS effective_ns
    FROM d_ledger WHERE run_id = $run_id
), process AS (
    SELECT count(DISTINCT rank) FILTER (WHERE described) AS ranks_reporting, count(DISTINCT host) AS hosts,
           count(DISTINCT replica_group) AS replica_groups, max(last_ns) AS last_ns
    FROM d_process WHERE run_id = $run_id
), plan AS (
    SELECT count(DISTINCT rank) AS ranks, count(DISTINCT attempt) AS attempts FROM d_plan WHERE run_id = $run_id
), started AS (
    -- The last of the ranks that were there when training began has begun its first step.
    SELECT max(first_step_begin_ns) AS first_step_ns
    FROM d_process WHERE run_id = $run_id AND spawn_ns <= (SELECT min(first_step_end_ns) FROM d_process WHERE run_id = $run_id)
      AND attempt = (SELECT min_by(attempt, first_step_begin_ns) FROM d_process WHERE run_id = $run_id)
), reference AS (
    SELECT any_value(reference_step_ns) AS reference_step_ns FROM d_reference WHERE run_id = $run_id
), step AS (
    SELECT count(DISTINCT step) FILTER (WHERE ranks_kept > 0) AS steps_committed,
           count(DISTINCT (attempt, step)) FILTER (WHERE lost_ranks > 0) AS steps_lost,
           max(end_ns) FILTER (WHERE NOT is_open AND lost_ranks < ranks) AS last_commit_ns
    FROM d_step_summary WHERE run_id = $run_id
), evenness AS (
    SELECT sum(least(end_ns - begin_ns, reference_step_ns))::DOUBLE / nullif(sum(end_ns - begin_ns), 0)::DOUBLE AS ratio
    FROM s_step, reference WHERE run_id = $run_id AND kept AND NOT is_open
), incident AS (
    SELECT count(*) FILTER (WHERE kind <> 'planned') AS failures,
           median(recovered_ns - began_ns)::BIGINT AS recover_ns, max(recovered_ns - began_ns) AS recover_max_ns,
           bool_or(next_attempt IS NULL) AS is_fatal
    FROM d_incident WHERE run_id = $run_id
), mfu AS (
    SELECT attempt, step, avg(value) AS mfu FROM scalar WHERE run_id = $run_id AND name = 'mfu' GROUP BY ALL
), steady AS (
    SELECT quantile_disc(m.mfu, 0.95) AS mfu_reference
    FROM mfu m JOIN d_step_summary s USING (attempt, step)
    WHERE s.run_id = $run_id AND s.ranks_kept > 0 AND s.ranks_first = 0
), used AS (
    -- A step without a value of its own has the last one before it.
    SELECT l.ns, coalesce(last_value(m.mfu IGNORE NULLS) OVER w, any_value(m.mfu) OVER (PARTITION BY l.attempt)) AS mfu
    FROM d_ledger_step l LEFT JOIN mfu m USING (attempt, step)
    WHERE l.run_id = $run_id AND l.category = 'productive'
    WINDOW w AS (PARTITION BY l.attempt ORDER BY l.step ROWS UNBOUNDED PRECEDING)
), useful AS (
    SELECT CASE WHEN any_value(mfu_reference) > 0 THEN sum(ns * least(1.0, mfu / mfu_reference))::HUGEINT END AS effective_mfu_ns,
           any_value(mfu_reference) AS mfu_reference
    FROM used, steady
), seen AS (
    SELECT sum(dropped)::BIGINT AS dropped, sum(errors)::BIGINT AS errors FROM source WHERE run_id = $run_id
)
SELECT f.run_id,
       CASE WHEN NOT f.is_over THEN 'running'
            WHEN coalesce(incident.is_fatal, false) OR process.last_ns IS NULL THEN 'failed' ELSE 'finished' END AS status,
       r.origin, plan.ranks, process.replica_groups, process.hosts, plan.attempts, f.begin_ns AS began_ns,
       f.end_ns AS ended_ns, ledger.planned_ns, coalesce(ledger.queue_ns, 0) AS queue_ns,
       coalesce(ledger.absent_ns, 0) AS absent_ns, coalesce(ledger.effective_ns, 0) AS effective_ns,
       useful.effective_mfu_ns, useful.mfu_reference, started.first_step_ns - f.begin_ns AS time_to_start_ns,
       incident.recover_ns AS time_to_recover_ns, incident.recover_max_ns AS time_to_recover_max_ns, incident.failures,
       step.steps_committed, step.steps_lost, reference.reference_step_ns, evenness.ratio AS step_efficiency,
       greatest(plan.ranks, r.planned_ranks) AS ranks_expected, process.ranks_reporting,
       coalesce(seen.dropped, 0) AS dropped, coalesce(seen.errors, 0) AS errors, f.end_ns AS as_of_ns,
       step.last_commit_ns,
       (SELECT bool_or(first_step IS NOT NULL) FROM d_process p JOIN d_window w USING (run_id, lane, attempt)
        WHERE p.run_id = $run_id AND w.is_last) AS is_stepping,
       r.framework, r.backend, r.device_kind, r.command
FROM d_frame f LEFT JOIN run r USING (run_id),
     ledger, process, plan, started, reference, step, evenness, incident, useful, seen
WHERE f.run_id = $run_id
