-- Grain: member and category, where a member is an attempt, a rank, a host or a replica group ($by). The $limit
-- members with the least effective time, in their own order.
WITH part AS (
    SELECT
        CASE $by
            WHEN 'attempt' THEN attempt
            WHEN 'rank' THEN rank
            WHEN 'replica group' THEN replica_group
        END AS number,
        CASE WHEN $by = 'host' THEN host END AS host,
        category,
        sum(ns) / 1e9 AS rank_s
    FROM v_ledger
    WHERE run_id = $run
    GROUP BY ALL
),
member AS (
    SELECT
        number, host,
        sum(rank_s) AS member_s,
        coalesce(sum(rank_s) FILTER (category IN ('productive', 'straggler_wait', 'data_wait')), 0)
            / nullif(sum(rank_s), 0) AS effective_ratio
    FROM part
    GROUP BY number, host
),
placed AS (
    SELECT
        *, row_number() OVER (ORDER BY effective_ratio, number, host) AS place, count(*) OVER () AS members
    FROM member
)
SELECT
    coalesce(placed.host, $by || ' ' || placed.number, 'no ' || $by) AS member,
    placed.number, placed.host, part.category, part.rank_s,
    part.rank_s / nullif(placed.member_s, 0) AS share_ratio,
    placed.effective_ratio, placed.members
FROM part
JOIN placed
    ON part.number IS NOT DISTINCT FROM placed.number AND part.host IS NOT DISTINCT FROM placed.host
WHERE placed.place <= $limit
ORDER BY placed.number, placed.host, part.category
