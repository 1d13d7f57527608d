-- One row per attempt after a run's first: when it was started again, where it resumed, and whether that was further
-- than the time before. Many within an hour are a restart storm; many that do not advance, a run that stands still.
--   since_previous_s: Since the attempt before it
--   restarts_in_hour: Restarts in the hour up to this one, itself counted
--   resumed_at: First step number; null: it reached none
--   advanced: It resumed beyond the step where the attempt before it did; null: one of them made no step
--   restarts_without_advance: Restarts in a row, up to this one, that did not advance
WITH attempt_start AS (
    SELECT run_id, attempt, min(spawn_ns) AS began_ns, min(first_step) AS resumed_at
    FROM d_process GROUP BY ALL
), followed AS (
    SELECT *, began_ns - lag(began_ns) OVER w AS since_ns, row_number() OVER w AS place,
           resumed_at > max(resumed_at) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS advanced
    FROM attempt_start WINDOW w AS (PARTITION BY run_id ORDER BY began_ns)
), restarted AS (
    SELECT *, sum(CASE WHEN advanced THEN 1 ELSE 0 END) OVER (PARTITION BY run_id ORDER BY began_ns) AS advances
    FROM followed WHERE place > 1
)
SELECT run_id, attempt, began_ns, make_timestamp_ns(began_ns) AS began_at, since_ns / 1e9 AS since_previous_s,
       count(*) OVER (PARTITION BY run_id ORDER BY began_ns RANGE BETWEEN 3600000000000 PRECEDING AND CURRENT ROW)
           AS restarts_in_hour,
       resumed_at, advanced,
       (sum(CASE WHEN advanced THEN 0 ELSE 1 END) OVER (PARTITION BY run_id, advances ORDER BY began_ns))::BIGINT
           AS restarts_without_advance
FROM restarted
