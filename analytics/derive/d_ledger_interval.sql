-- The ledger's sweep: along each tile of the plan, at every boundary of a claim, the number of open claims per
-- category; the first category in order with one open has the time up to the next boundary. One sort, no range join.
WITH claim AS (
    SELECT c.attempt, c.rank, c.incarnation, c.category, c.step,
           greatest(c.begin_ns, p.begin_ns) AS begin_ns, least(c.end_ns, p.end_ns) AS end_ns
    FROM s_claim c JOIN d_plan p USING (run_id, attempt, rank, incarnation)
    WHERE c.run_id = $run_id AND p.run_id = $run_id AND c.rank BETWEEN $rank_low AND $rank_high
      AND greatest(c.begin_ns, p.begin_ns) < least(c.end_ns, p.end_ns)
), edge AS (
    SELECT attempt, rank, incarnation, begin_ns AS t, category, step, 1 AS delta FROM claim
    UNION ALL
    SELECT attempt, rank, incarnation, end_ns, category, step, -1 FROM claim
    UNION ALL
    SELECT attempt, rank, incarnation, unnest([begin_ns, end_ns]), 'plan', NULL, 0
    FROM d_plan WHERE run_id = $run_id AND rank BETWEEN $rank_low AND $rank_high AND begin_ns < end_ns
), point AS (
    SELECT attempt, rank, incarnation, t,
           sum(CASE WHEN category = 'queue' THEN delta ELSE 0 END) AS queue,
           sum(CASE WHEN category = 'absent' THEN delta ELSE 0 END) AS absent,
           sum(CASE WHEN category = 'restart' THEN delta ELSE 0 END) AS restart,
           sum(CASE WHEN category = 'detect' THEN delta ELSE 0 END) AS detect,
           sum(CASE WHEN category = 'quorum' THEN delta ELSE 0 END) AS quorum,
           sum(CASE WHEN category = 'reconfigure' THEN delta ELSE 0 END) AS reconfigure,
           sum(CASE WHEN category = 'heal' THEN delta ELSE 0 END) AS heal,
           sum(CASE WHEN category = 'lost' THEN delta ELSE 0 END) AS lost,
           sum(CASE WHEN category = 'init' THEN delta ELSE 0 END) AS init,
           sum(CASE WHEN category = 'checkpoint' THEN delta ELSE 0 END) AS checkpoint,
           sum(CASE WHEN category = 'eval' THEN delta ELSE 0 END) AS eval,
           sum(CASE WHEN category = 'data_wait' THEN delta ELSE 0 END) AS data_wait,
           sum(CASE WHEN category = 'straggler_wait' THEN delta ELSE 0 END) AS straggler_wait,
           sum(CASE WHEN category = 'stall' THEN delta ELSE 0 END) AS stall,
           sum(CASE WHEN category = 'productive' THEN delta ELSE 0 END) AS productive,
           sum(CASE WHEN category = 'productive' THEN delta * coalesce(step, 0) ELSE 0 END) AS kept_step,
           sum(CASE WHEN category = 'lost' THEN delta * coalesce(step, 0) ELSE 0 END) AS lost_step
    FROM edge GROUP BY ALL
), swept AS (
    SELECT attempt, rank, incarnation, t AS begin_ns, lead(t) OVER w AS end_ns,
           CASE WHEN sum(queue) OVER w > 0 THEN 'queue'
                WHEN sum(absent) OVER w > 0 THEN 'absent'
                WHEN sum(restart) OVER w > 0 THEN 'restart'
                WHEN sum(detect) OVER w > 0 THEN 'detect'
                WHEN sum(quorum) OVER w > 0 THEN 'quorum'
                WHEN sum(reconfigure) OVER w > 0 THEN 'reconfigure'
                WHEN sum(heal) OVER w > 0 THEN 'heal'
                WHEN sum(lost) OVER w > 0 THEN 'lost'
                WHEN sum(init) OVER w > 0 THEN 'init'
                WHEN sum(checkpoint) OVER w > 0 THEN 'checkpoint'
                WHEN sum(eval) OVER w > 0 THEN 'eval'
                WHEN sum(data_wait) OVER w > 0 THEN 'data_wait'
                -- Waiting counts as effective, so only inside a step that counts.
                WHEN sum(straggler_wait) OVER w > 0 AND sum(productive) OVER w > 0 THEN 'straggler_wait'
                WHEN sum(stall) OVER w > 0 THEN 'stall'
                WHEN sum(productive) OVER w > 0 THEN 'productive'
                ELSE 'unexplained' END AS category,
           -- Which step it is in, where that is one and not several at once.
           CASE WHEN sum(productive) OVER w = 1 THEN sum(kept_step) OVER w
                WHEN sum(lost) OVER w = 1 THEN sum(lost_step) OVER w END AS step
    FROM point
    WINDOW w AS (PARTITION BY attempt, rank, incarnation ORDER BY t ROWS UNBOUNDED PRECEDING)
), marked AS (
    SELECT *, category IS DISTINCT FROM lag(category) OVER w OR step IS DISTINCT FROM lag(step) OVER w AS is_new
    FROM swept WHERE end_ns IS NOT NULL
    WINDOW w AS (PARTITION BY attempt, rank, incarnation ORDER BY begin_ns)
), numbered AS (
    SELECT *, count(*) FILTER (WHERE is_new) OVER (
               PARTITION BY attempt, rank, incarnation ORDER BY begin_ns ROWS UNBOUNDED PRECEDING) AS interval_number
    FROM marked
)
SELECT $run_id AS run_id, attempt, rank, incarnation, category, step::BIGINT AS step,
       min(begin_ns) AS begin_ns, max(end_ns) AS end_ns
FROM numbered
GROUP BY attempt, rank, incarnation, interval_number, category, step
ORDER BY rank, begin_ns
