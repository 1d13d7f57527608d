-- The ledger summed: rank time per process and category, the gap before a process included.
SELECT i.run_id, i.attempt, i.rank, i.incarnation, p.host, p.replica_group, i.category,
       sum(i.end_ns - i.begin_ns)::BIGINT AS ns
FROM d_ledger_interval i JOIN d_plan p USING (run_id, attempt, rank, incarnation)
WHERE i.run_id = $run_id AND i.rank BETWEEN $rank_low AND $rank_high GROUP BY ALL
