-- One row per collective on a rank, where it was stored in full: first steps, sampled ranks, around incidents.
--   op: Operation
--   dtype: Element type
--   sizes: Sizes of its tensors
--   bytes [bytes]: Bytes of this rank's input
--   site: Line of code that called it
--   enqueue_ns: Called: this rank's arrival
--   end_ns: Complete; null: it was not when last read
--   state: scheduled, started, completed or error
--   is_async: Did not block its caller
--   is_p2p: Point to point
SELECT c.run_id, c.attempt, c.rank, c.incarnation, c.pg, c.seq, c.op, c.dtype, c.sizes, c.bytes, c.site, c.step,
       c.enqueue_ns - coalesce(p.offset_ns, 0) AS enqueue_ns, c.end_ns - coalesce(p.offset_ns, 0) AS end_ns,
       c.end_ns - c.enqueue_ns AS duration_ns, c.state, c.is_async, c.is_p2p, c.source_id
FROM collective c LEFT JOIN d_process p USING (run_id, attempt, rank, incarnation)
