-- The ledger over time: how many ranks are in each category, as a step function, cut at whole minutes and summed.
WITH edge AS (
    SELECT category, begin_ns AS t, count(*) AS delta FROM d_ledger_interval WHERE run_id = $run_id GROUP BY ALL
    UNION ALL
    SELECT category, end_ns, -count(*) FROM d_ledger_interval WHERE run_id = $run_id GROUP BY ALL
    UNION ALL
    SELECT c.category, minute.t, 0
    FROM (SELECT category, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns
          FROM d_ledger_interval WHERE run_id = $run_id GROUP BY ALL) c,
         generate_series((c.begin_ns // 60000000000 + 1) * 60000000000, c.end_ns, 60000000000) AS minute(t)
), point AS (
    SELECT category, t, sum(delta) AS delta FROM edge GROUP BY ALL
), level AS (
    SELECT category, t AS begin_ns, lead(t) OVER w AS end_ns, sum(delta) OVER w AS ranks
    FROM point WINDOW w AS (PARTITION BY category ORDER BY t ROWS UNBOUNDED PRECEDING)
)
SELECT $run_id AS run_id, begin_ns // 60000000000 * 60000000000 AS bucket_ns, category,
       sum(ranks * (end_ns - begin_ns))::BIGINT AS ns
FROM level WHERE ranks > 0 AND end_ns IS NOT NULL GROUP BY ALL
