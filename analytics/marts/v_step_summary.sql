-- One row per attempt and step, over its ranks.
--   ranks_kept: Ranks for which it was committed and never rolled back
--   lost_ranks: Ranks for which it was thrown away
--   begin_ns: First rank's begin
--   begin_at: First rank's begin
--   end_ns: Last rank's end
--   is_open: Still going on somewhere
--   is_first: Some process' first step: it warms up
SELECT run_id, attempt, step, ranks, ranks_kept, lost_ranks, begin_ns, end_ns, make_timestamp_ns(begin_ns) AS begin_at,
       p50_ns, p95_ns, max_ns, max_rank, ranks_kept > 0 OR is_open AS kept, is_open, ranks_first > 0 AS is_first
FROM d_step_summary
