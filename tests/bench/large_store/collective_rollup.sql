-- The slow rank comes 400 ms after everybody.
INSERT INTO collective_rollup BY NAME
SELECT $run AS run_id, $attempt AS attempt, r::INTEGER AS rank, 0 AS incarnation, s AS step, 'world' AS pg,
       48 AS count, 12884901888 AS bytes, 9000000000 + (hash(s, r) % 500000000)::BIGINT AS total_ns,
       700000000 + (hash(r, s) % 50000000)::BIGINT AS max_ns,
       $begun + (s - $first) * $step_ns + 8000000000 + (hash(r, s) % 30000000)::BIGINT
           + CASE WHEN r = $slow THEN 400000000 ELSE 0 END AS first_enqueue_ns,
       $begun + (s - $first) * $step_ns + 18000000000 + (hash(r, s) % 30000000)::BIGINT AS last_enqueue_ns,
       $begun + (s + 1 - $first) * $step_ns - 900000000 AS last_end_ns, s * 48 + 47 AS last_seq,
       $attempt * $ranks + r AS source_id
FROM range($low, $high) t(s), range($ranks) u(r)
