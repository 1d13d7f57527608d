-- How the ranks of a group came together in a step: its first collective, from roll-ups.
WITH arrived AS (
    SELECT c.attempt, c.pg, c.step, c.rank, c.first_enqueue_ns - p.offset_ns AS arrival_ns
    FROM collective_rollup c JOIN d_process p USING (run_id, attempt, rank, incarnation)
    WHERE c.run_id = $run_id AND c.step BETWEEN $step_low AND $step_high
), met AS (
    SELECT attempt, pg, step, count(*) AS arrivals, min(arrival_ns) AS first_ns,
           quantile_disc(arrival_ns, 0.5) AS median_ns, max(arrival_ns, 2) AS latest, arg_max(rank, arrival_ns) AS last_rank
    FROM arrived GROUP BY ALL HAVING count(*) > 1
)
SELECT $run_id AS run_id, attempt, pg, step, arrivals, first_ns, median_ns, latest[1] AS last_ns,
       latest[2] AS second_last_ns, last_rank
FROM met
