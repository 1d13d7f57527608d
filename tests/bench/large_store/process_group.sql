INSERT INTO process_group BY NAME
SELECT $run AS run_id, $attempt AS attempt, 0 AS rank, 0 AS incarnation, 'world' AS pg, 'nccl' AS backend,
       list(r::INTEGER ORDER BY r) AS ranks, $spawn + 150000000000 AS created_ns
FROM range($ranks) t(r)
