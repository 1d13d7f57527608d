-- Grain: range of neighbouring ranks that one incident touched in one way; the first $limit ranges of each way.
WITH incident AS (
    SELECT missing_ranks, held_ranks, restarted_ranks
    FROM v_incident
    WHERE run_id = $run AND incident_id = $incident
),
touched AS (
    SELECT 'missing' AS way, unnest(missing_ranks) AS rank FROM incident
    UNION ALL
    SELECT 'held up', unnest(held_ranks) FROM incident
    UNION ALL
    SELECT 'restarted', unnest(restarted_ranks) FROM incident
),
island AS (
    SELECT way, rank, rank - row_number() OVER (PARTITION BY way ORDER BY rank) AS island FROM touched
),
ranges AS (
    SELECT way, min(rank) AS first_rank, max(rank) AS last_rank, count(*) AS ranks
    FROM island
    GROUP BY way, island
)
SELECT
    way, first_rank, last_rank,
    sum(ranks) OVER (PARTITION BY way)::BIGINT AS way_ranks,
    count(*) OVER (PARTITION BY way) AS way_ranges
FROM ranges
QUALIFY row_number() OVER (PARTITION BY way ORDER BY first_rank) <= $limit
ORDER BY way, first_rank
