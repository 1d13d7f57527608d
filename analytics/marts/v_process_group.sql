-- One row per process group of an attempt, as its members described it.
--   description: What it is for
--   backend: Communication backend
--   ranks: Its members in order, global ranks
--   size: Number of members
--   told_by: Members that described it
--   created_ns: First member's creation
SELECT run_id, attempt, pg, any_value(description) AS description, any_value(backend) AS backend, ranks,
       len(ranks) AS size, count(DISTINCT rank) AS told_by, min(created_ns) AS created_ns
FROM process_group GROUP BY run_id, attempt, pg, ranks
