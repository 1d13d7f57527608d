INSERT INTO rank BY NAME
SELECT $run AS run_id, $attempt AS attempt, r::INTEGER AS rank, 0 AS incarnation,
       'host-' || lpad((r // $host_ranks)::VARCHAR, 5, '0') AS host, (r % $host_ranks)::INTEGER AS local_rank,
       (1000 + r)::INTEGER AS pid,
       json_object('dp', r // 32, 'pp', r // 8 % 4, 'tp', r % 8) AS mesh,
       $spawn + hash(r) % 2000000000 AS spawn_ns, $spawn + 2000000000 AS began_ns, 'rank' AS role,
       $attempt * $ranks + r AS source_id
FROM range($ranks) t(r)
