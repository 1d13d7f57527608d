-- One row per step of a rank. Filter by run_id and rank or step: a large run has hundreds of millions.
--   committed: The update was applied; null: nobody said
--   lost_reason: not committed, in flight (its process ended inside), or rolled back; null: kept
--   is_open: Still going on
SELECT run_id, attempt, rank, incarnation, step, begin_ns, end_ns, make_timestamp_ns(begin_ns) AS begin_at,
       end_ns - begin_ns AS duration_ns, committed, kept, lost_reason, is_open AND kept AS is_open, source_id
FROM s_step
