-- Every hundredth step is saved at its end, which blocks for about a second.
INSERT INTO span BY NAME
SELECT $run AS run_id, $attempt AS attempt, r::INTEGER AS rank, 0 AS incarnation, 'checkpoint_save' AS category,
       'save' AS name, s AS step,
       $begun + (s + 1 - $first) * $step_ns - 1900000000 AS begin_ns,
       $begun + (s + 1 - $first) * $step_ns - 1100000000 + (hash(r, s) % 90000000)::BIGINT AS end_ns,
       'ok' AS status, 0 AS thread, $attempt * $ranks + r AS source_id
FROM range($low, $high) t(s), range($ranks) u(r) WHERE s % 100 = 99
