-- How late a rank comes to its groups' collectives: arrival against the group's median, and the wait that it imposes
-- on the others when it comes last: (last - second last) x others. From full rows where they cover as many steps as
-- the roll-ups do; a roll-up gives the first arrival of a step, which no earlier wait of that step has evened out.
WITH full_row AS (
    SELECT run_id, attempt, rank, incarnation, pg, step, arrival_ns, arrivals, last_arrival_ns,
           arrival_ns - median_arrival_ns AS late_ns, lead(arrival_ns) OVER w AS before_ns, row_number() OVER w AS from_last
    FROM s_arrival WHERE run_id = $run_id
    WINDOW w AS (PARTITION BY run_id, attempt, lane, pg, seq ORDER BY arrival_ns DESC, rank)
), basis AS (
    SELECT coalesce(f.attempt, m.attempt) AS attempt, coalesce(f.pg, m.pg) AS pg,
           coalesce(f.steps, 0) >= coalesce(m.steps, 0) AS is_full
    FROM (SELECT attempt, pg, count(DISTINCT step) AS steps FROM full_row GROUP BY ALL) f
    FULL JOIN (SELECT attempt, pg, count(*) AS steps FROM d_meeting WHERE run_id = $run_id GROUP BY ALL) m
        ON m.attempt = f.attempt AND m.pg = f.pg
), arrived AS (
    SELECT f.attempt, f.rank, f.incarnation, f.pg, 'collective' AS basis, f.late_ns, f.arrivals,
           f.last_arrival_ns - f.arrival_ns AS waited_ns, f.from_last = 1 AS is_last, f.arrival_ns - f.before_ns AS gap_ns
    FROM full_row f JOIN basis b USING (attempt, pg)
    WHERE b.is_full AND f.rank BETWEEN $rank_low AND $rank_high
    UNION ALL
    SELECT c.attempt, c.rank, c.incarnation, c.pg, 'rollup', c.first_enqueue_ns - p.offset_ns - m.median_ns, m.arrivals,
           m.last_ns - c.first_enqueue_ns + p.offset_ns, c.rank = m.last_rank, m.last_ns - m.second_last_ns
    FROM collective_rollup c
    JOIN d_process p USING (run_id, attempt, rank, incarnation)
    JOIN d_meeting m USING (run_id, attempt, pg, step)
    JOIN basis b USING (attempt, pg)
    WHERE c.run_id = $run_id AND NOT b.is_full AND c.rank BETWEEN $rank_low AND $rank_high
)
SELECT $run_id AS run_id, attempt, rank, incarnation, pg, basis, count(*) AS arrivals,
       avg(late_ns)::BIGINT AS late_mean_ns, approx_quantile(late_ns, 0.5)::BIGINT AS late_p50_ns,
       approx_quantile(late_ns, 0.95)::BIGINT AS late_p95_ns, max(late_ns)::BIGINT AS late_max_ns,
       count(*) FILTER (WHERE is_last) AS last_arrivals,
       coalesce(sum(gap_ns * (arrivals - 1)) FILTER (WHERE is_last), 0)::BIGINT AS imposed_ns,
       sum(waited_ns)::BIGINT AS waited_ns
FROM arrived GROUP BY ALL
