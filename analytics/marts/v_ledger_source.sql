-- What the ledger's intervals rest on: one row per record or rule that claims a stretch of a rank's time. The ledger
-- gives a moment to the first category in its order that claims it. Filter by run_id and rank; then the claims with
-- begin_ns < the interval's end and end_ns > its begin, of the same category, explain the interval.
--   rule: Why it claims the time
--   source_path: File or stream that the record came from; null where a rule needs no single record
SELECT c.run_id, c.attempt, c.rank, c.incarnation, c.category, c.step, c.begin_ns, c.end_ns, c.rule, c.source_id,
       coalesce(s.path, s.stream) AS source_path
FROM s_claim c LEFT JOIN source s USING (source_id)
WHERE c.begin_ns < c.end_ns
