-- How much there is to sum, for cutting a refresh into parts: steps of ranks, step numbers, highest rank.
SELECT coalesce(sum(last_step - first_step + 1), 0)::BIGINT AS steps, coalesce(min(first_step), 0) AS first_step,
       coalesce(max(last_step), 0) AS last_step,
       (SELECT coalesce(max(rank), 0) FROM d_plan WHERE run_id = $run_id) AS last_rank
FROM d_process WHERE run_id = $run_id
