-- The ledger's sweep: along each tile of the plan, at every boundary of a claim, the number of open claims per
-- category; the first category in order with one open has the time up to the next boundary. One sort, no range join.
-- The counts of five categories share a BIGINT, 12 bits each, so that a running sum is three additions and not
-- fifteen; the first category has the highest bits. No category has 4096 claims of one rank open at once.
WITH weight AS (
    SELECT * FROM (VALUES
        ('queue', 1::BIGINT << 48, 0::BIGINT, 0::BIGINT), ('absent', 1::BIGINT << 36, 0, 0),
        ('restart', 1::BIGINT << 24, 0, 0), ('detect', 1::BIGINT << 12, 0, 0), ('quorum', 1::BIGINT, 0, 0),
        ('reconfigure', 0, 1::BIGINT << 48, 0), ('heal', 0, 1::BIGINT << 36, 0), ('lost', 0, 1::BIGINT << 24, 0),
        ('init', 0, 1::BIGINT << 12, 0), ('checkpoint', 0, 1::BIGINT, 0),
        ('eval', 0, 0, 1::BIGINT << 48), ('data_wait', 0, 0, 1::BIGINT << 36),
        ('straggler_wait', 0, 0, 1::BIGINT << 24), ('stall', 0, 0, 1::BIGINT << 12), ('productive', 0, 0, 1::BIGINT)
    ) AS v(category, a, b, c)
), claim AS (
    SELECT c.attempt, c.rank, c.incarnation, w.a, w.b, w.c,
           CASE WHEN c.category IN ('productive', 'lost') THEN coalesce(c.step, 0) ELSE 0 END AS step,
           greatest(c.begin_ns, p.begin_ns) AS begin_ns, least(c.end_ns, p.end_ns) AS end_ns
    FROM s_claim c JOIN d_plan p USING (run_id, attempt, rank, incarnation) JOIN weight w USING (category)
    WHERE c.run_id = $run_id AND p.run_id = $run_id AND c.rank BETWEEN $rank_low AND $rank_high
      AND greatest(c.begin_ns, p.begin_ns) < least(c.end_ns, p.end_ns)
), edge AS (
    SELECT attempt, rank, incarnation, begin_ns AS t, a, b, c, step FROM claim
    UNION ALL
    SELECT attempt, rank, incarnation, end_ns, -a, -b, -c, -step FROM claim
    UNION ALL
    SELECT attempt, rank, incarnation, unnest([begin_ns, end_ns]), 0, 0, 0, 0
    FROM d_plan WHERE run_id = $run_id AND rank BETWEEN $rank_low AND $rank_high AND begin_ns < end_ns
), swept AS (
    SELECT attempt, rank, incarnation, t AS begin_ns, lead(t) OVER w AS end_ns, (sum(a) OVER w)::BIGINT AS a,
           (sum(b) OVER w)::BIGINT AS b, (sum(c) OVER w)::BIGINT AS c, (sum(step) OVER w)::BIGINT AS step
    FROM edge
    WINDOW w AS (PARTITION BY attempt, rank, incarnation ORDER BY t ROWS UNBOUNDED PRECEDING)
), named AS (
    SELECT attempt, rank, incarnation, begin_ns, end_ns,
           CASE WHEN a >= 1::BIGINT << 48 THEN 'queue'
                WHEN a >= 1::BIGINT << 36 THEN 'absent'
                WHEN a >= 1::BIGINT << 24 THEN 'restart'
                WHEN a >= 1::BIGINT << 12 THEN 'detect'
                WHEN a > 0 THEN 'quorum'
                WHEN b >= 1::BIGINT << 48 THEN 'reconfigure'
                WHEN b >= 1::BIGINT << 36 THEN 'heal'
                WHEN b >= 1::BIGINT << 24 THEN 'lost'
                WHEN b >= 1::BIGINT << 12 THEN 'init'
                WHEN b > 0 THEN 'checkpoint'
                WHEN c >= 1::BIGINT << 48 THEN 'eval'
                WHEN c >= 1::BIGINT << 36 THEN 'data_wait'
                -- Waiting counts as effective, so only inside a step that counts.
                WHEN c >= 1::BIGINT << 24 AND c % 4096 > 0 THEN 'straggler_wait'
                WHEN c >> 12 & 4095 > 0 THEN 'stall'
                WHEN c % 4096 > 0 THEN 'productive'
                ELSE 'unexplained' END AS category,
           -- Which step it is in, where that is one and not several at once.
           CASE WHEN c % 4096 + (b >> 24 & 4095) = 1 THEN step END AS step
    FROM swept WHERE end_ns > begin_ns
), marked AS (
    SELECT *, category IS DISTINCT FROM lag(category) OVER w OR step IS DISTINCT FROM lag(step) OVER w AS is_new
    FROM named WINDOW w AS (PARTITION BY attempt, rank, incarnation ORDER BY begin_ns)
)
-- Stretches tile the plan, so a merged one ends where the next begins.
SELECT $run_id AS run_id, m.attempt, m.rank, m.incarnation, m.category, m.step, m.begin_ns,
       coalesce(lead(m.begin_ns) OVER (PARTITION BY m.attempt, m.rank, m.incarnation ORDER BY m.begin_ns), p.end_ns)
           AS end_ns
FROM marked m
JOIN d_plan p ON p.run_id = $run_id AND p.attempt = m.attempt AND p.rank = m.rank AND p.incarnation = m.incarnation
WHERE m.is_new
ORDER BY m.rank, m.begin_ns
