INSERT INTO process_exit BY NAME
SELECT $run AS run_id, $attempt AS attempt, r::INTEGER AS rank, 0 AS incarnation, (1000 + r)::INTEGER AS pid,
       CASE WHEN $attempt = 0 AND r = $victim THEN $ended - 40000000000 ELSE $ended + hash(r) % 1000000000 END AS time_ns,
       CASE WHEN $attempt = 1 THEN 0 WHEN r = $victim THEN -9 ELSE -15 END AS exit_code, 'launcher' AS observer
FROM range($ranks) t(r)
