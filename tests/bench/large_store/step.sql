INSERT INTO span BY NAME
SELECT $run AS run_id, $attempt AS attempt, r::INTEGER AS rank, 0 AS incarnation, 'step' AS category, '' AS name,
       s AS step, true AS committed,
       $begun + (s - $first) * $step_ns + (hash(r, s) % 3000000)::BIGINT AS begin_ns,
       $begun + (s + 1 - $first) * $step_ns - 1000000 + (hash(s, r) % 900000)::BIGINT AS end_ns,
       'ok' AS status, 0 AS thread, $attempt * $ranks + r AS source_id
FROM range($low, $high) t(s), range($ranks) u(r)
