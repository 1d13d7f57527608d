-- One row per span of a rank: start-up phases, steps, waits, checkpoints. Filter by run_id and rank or category.
--   category: What the time was spent on, one of the span categories
--   name: Phase or name within the category
--   committed: Steps only: the update was applied
--   status: ok, error, or open: still going on
--   thread: Thread of the process; 0 is its main thread
--   attrs: More, as JSON
SELECT run_id, attempt, rank, incarnation, category, name, step, committed, begin_ns, end_ns,
       make_timestamp_ns(begin_ns) AS begin_at, end_ns - begin_ns AS duration_ns, status, thread, attrs, source_id
FROM s_span
