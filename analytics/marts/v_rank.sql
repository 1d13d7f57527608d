-- One row per process of a rank: who it was, when it lived, how it ended.
--   device: Device that it computed on
--   spawn_ns: Its process started
--   spawn_at: Its process started
--   began_ns: Its recorder opened
--   ended_ns: Its process ended; null while it lives
--   last_ns: Its last record
--   exit_code: Exit code; negative: ended by that signal; null: nobody saw it
--   exit_observer: Who saw the end
--   first_step: Its first step
--   last_step: The last step that it began
--   first_step_ns: Its first step's begin
--   clock_offset_ns: Taken off all its times: its host's clock against the run's reference host
--   described: It spoke for itself; false: only others tell of it
SELECT run_id, attempt, rank, incarnation, host, local_rank, pid, device, replica_group, mesh, spawn_ns,
       make_timestamp_ns(spawn_ns) AS spawn_at, began_ns, ended_ns, make_timestamp_ns(ended_ns) AS ended_at, last_ns,
       exit_code, exit_observer, first_step, last_step, first_step_begin_ns AS first_step_ns,
       offset_ns AS clock_offset_ns, described, source_id
FROM d_process
