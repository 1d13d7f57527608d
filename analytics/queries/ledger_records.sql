-- Grain: stretch of one rank's time in one category, longest first, with the record or rule that it rests on.
WITH stretch AS (
    SELECT i.*, r.host, r.replica_group
    FROM v_ledger_interval AS i
    LEFT JOIN v_rank AS r
        ON i.run_id = r.run_id AND i.attempt = r.attempt AND i.rank = r.rank AND i.incarnation = r.incarnation
    WHERE
        i.run_id = $run AND i.category = $category
        AND ($attempt IS NULL OR i.attempt = $attempt)
        AND ($rank IS NULL OR i.rank = $rank)
        AND ($host IS NULL OR r.host = $host)
        AND ($group IS NULL OR r.replica_group = $group)
    ORDER BY i.duration_ns DESC, i.rank, i.begin_ns
    LIMIT $limit
)
SELECT
    s.attempt, s.rank, s.host, s.step, s.begin_at, s.duration_ns / 1e9 AS seconds,
    string_agg(DISTINCT c.rule, '; ') AS because,
    string_agg(DISTINCT c.source_path, '; ') AS source
FROM stretch AS s
LEFT JOIN v_ledger_source AS c
    ON
        c.run_id = $run AND s.attempt = c.attempt AND s.rank = c.rank AND s.incarnation = c.incarnation
        AND s.category = c.category AND c.begin_ns < s.end_ns AND c.end_ns > s.begin_ns
GROUP BY ALL
ORDER BY seconds DESC, s.rank, s.begin_at
