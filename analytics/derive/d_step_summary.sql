-- One row per attempt and step: how long it took over ranks, and whether it still counts.
WITH taken AS (
    SELECT run_id, attempt, step, count(DISTINCT rank) AS ranks,
           count(DISTINCT rank) FILTER (WHERE kept AND NOT is_open) AS ranks_kept,
           count(DISTINCT rank) FILTER (WHERE is_first) AS ranks_first,
           min(begin_ns) AS begin_ns, max(end_ns) AS end_ns,
           quantile_cont(end_ns - begin_ns, [0.5, 0.95]) AS quantiles,
           max(end_ns - begin_ns) AS max_ns, arg_max(rank, end_ns - begin_ns) AS max_rank,
           count(DISTINCT rank) FILTER (WHERE lost_reason IS NOT NULL) AS lost_ranks,
           bool_or(is_open AND kept) AS is_open
    FROM s_step WHERE run_id = $run_id AND step BETWEEN $step_low AND $step_high GROUP BY ALL
)
SELECT run_id, attempt, step, ranks, ranks_kept, ranks_first, begin_ns, end_ns,
       quantiles[1]::BIGINT AS p50_ns, quantiles[2]::BIGINT AS p95_ns, max_ns, max_rank,
       lost_ranks, is_open
FROM taken
