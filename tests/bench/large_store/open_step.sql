INSERT INTO open_span BY NAME
SELECT $run AS run_id, $attempt AS attempt, r::INTEGER AS rank, 0 AS incarnation, 'step' AS category, '' AS name,
       $step AS step, $step_begin AS begin_ns, 0 AS thread, 0 AS slot, $attempt * $ranks + r AS source_id
FROM range($ranks) t(r)
