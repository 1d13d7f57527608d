-- How much of the truth was seen: one row per attempt.
--   ranks_expected: Ranks planned
--   ranks_reporting: Ranks that told something themselves
--   ranks_silent: Ranks expected that told nothing
--   records: Records read
--   dropped: Records that had to be dropped
--   errors: Damaged or unreadable records
--   clock_offset_max_ns: Largest offset of a host's clock, taken off
WITH planned AS (
    SELECT run_id, attempt, count(DISTINCT rank) AS ranks FROM d_plan GROUP BY ALL
), process AS (
    SELECT run_id, attempt, count(DISTINCT rank) FILTER (WHERE described) AS ranks, max(abs(offset_ns)) AS offset_ns
    FROM d_process GROUP BY ALL
), read AS (
    SELECT run_id, attempt, sum(records)::BIGINT AS records, sum(dropped)::BIGINT AS dropped, sum(errors)::BIGINT AS errors
    FROM source GROUP BY ALL
)
SELECT p.run_id, p.attempt, p.ranks AS ranks_expected, coalesce(q.ranks, 0) AS ranks_reporting,
       p.ranks - coalesce(q.ranks, 0) AS ranks_silent, coalesce(r.records, 0) AS records,
       coalesce(r.dropped, 0) AS dropped, coalesce(r.errors, 0) AS errors,
       coalesce(q.offset_ns, 0) AS clock_offset_max_ns
FROM planned p LEFT JOIN process q USING (run_id, attempt) LEFT JOIN read r USING (run_id, attempt)
