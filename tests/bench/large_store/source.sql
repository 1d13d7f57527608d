INSERT INTO source BY NAME
SELECT $attempt * $ranks + r AS source_id, $run AS run_id, $attempt AS attempt, r::INTEGER AS rank, 0 AS incarnation,
       'segment' AS kind, $run || '/' || $attempt || '-' || r AS stream, 10000 AS records, 0 AS dropped, 0 AS errors,
       true AS complete
FROM range($ranks) t(r)
