-- One row per checkpoint save or load of an attempt, over its ranks.
--   kind: save or load
--   p50_s: Blocking time, median over ranks
--   max_s: Blocking time, longest over ranks
SELECT run_id, attempt, step, CASE category WHEN 'checkpoint_save' THEN 'save' ELSE 'load' END AS kind,
       count(DISTINCT rank) AS ranks, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns,
       make_timestamp_ns(min(begin_ns)) AS begin_at, median(end_ns - begin_ns) / 1e9 AS p50_s,
       max(end_ns - begin_ns) / 1e9 AS max_s, arg_max(rank, end_ns - begin_ns) AS max_rank
FROM s_span WHERE category IN ('checkpoint_save', 'checkpoint_load') AND thread = 0
GROUP BY run_id, attempt, step, category
