-- Derived tables: verdicts, recomputed per run by catalog.refresh from the facts in ingest/schema.sql.
-- All times are nanoseconds since the epoch on the run's reference clock (host_clock offsets taken off).

-- One row per process of a rank: its life, its steps' bounds, how it ended.
CREATE TABLE IF NOT EXISTS d_process (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    lane INTEGER,                -- replica group, or -1: ranks of one lane start and fall back together
    host VARCHAR, local_rank INTEGER, pid INTEGER, device VARCHAR, replica_group INTEGER, mesh JSON,
    described BOOLEAN,           -- the process spoke for itself
    offset_ns BIGINT,            -- of its host's clock, taken off all its times
    spawn_ns BIGINT, began_ns BIGINT,
    ended_ns BIGINT,             -- null while it lives
    last_ns BIGINT,              -- its last record
    exit_code INTEGER, exit_observer VARCHAR,
    first_step BIGINT, last_step BIGINT, first_step_begin_ns BIGINT, first_step_end_ns BIGINT,
    source_id BIGINT
);
-- One row per run: the frame that the ledger fills.
CREATE TABLE IF NOT EXISTS d_frame (
    run_id VARCHAR, begin_ns BIGINT, end_ns BIGINT, is_over BOOLEAN, has_lanes BOOLEAN
);
-- Stretches in which at least one process of the scope lives.
CREATE TABLE IF NOT EXISTS d_alive (
    run_id VARCHAR, scope INTEGER, -- attempt; -1 for the whole run, where replica groups outlive each other
    island INTEGER, begin_ns BIGINT, end_ns BIGINT
);
-- One row per attempt and lane: the stretch of time that counts as its own.
CREATE TABLE IF NOT EXISTS d_window (
    run_id VARCHAR, lane INTEGER, attempt INTEGER, ordinal INTEGER, is_last BOOLEAN,
    world_size INTEGER, begin_ns BIGINT, end_ns BIGINT
);
-- The plan: tiles every planned rank's time from the run's first to its last moment.
CREATE TABLE IF NOT EXISTS d_plan (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER, lane INTEGER,
    host VARCHAR, replica_group INTEGER,
    begin_ns BIGINT, end_ns BIGINT,
    spawn_ns BIGINT, ended_ns BIGINT, -- its process, cut to the tile; null: no process known
    is_first BOOLEAN,            -- no earlier process of this rank in this attempt
    is_last BOOLEAN              -- nothing of this rank follows
);
-- Training falls back to an earlier step when a new epoch begins: steps from kept_below on are done again.
CREATE TABLE IF NOT EXISTS d_epoch (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER, epoch INTEGER, kept_below BIGINT
);
-- One row per attempt and step.
CREATE TABLE IF NOT EXISTS d_step_summary (
    run_id VARCHAR, attempt INTEGER, step BIGINT, ranks INTEGER, ranks_kept INTEGER, ranks_first INTEGER,
    begin_ns BIGINT, end_ns BIGINT, p50_ns BIGINT, p95_ns BIGINT, max_ns BIGINT, max_rank INTEGER,
    lost_ranks INTEGER, is_open BOOLEAN
);
CREATE TABLE IF NOT EXISTS d_reference (run_id VARCHAR, reference_step_ns BIGINT, steps BIGINT, basis VARCHAR);
CREATE TABLE IF NOT EXISTS d_evidence (
    run_id VARCHAR, attempt INTEGER, lane INTEGER, incarnation INTEGER, -- the unit that failed
    rank INTEGER, host VARCHAR, time_ns BIGINT, observed_ns BIGINT, kind VARCHAR, failure_kind VARCHAR,
    observer VARCHAR, message VARCHAR, exit_code INTEGER, weight INTEGER, source_id BIGINT
);
CREATE TABLE IF NOT EXISTS d_incident (
    run_id VARCHAR, incident_id INTEGER, attempt INTEGER, lane INTEGER, incarnation INTEGER,
    began_low_ns BIGINT, began_ns BIGINT, detected_ns BIGINT, ended_ns BIGINT, recovered_ns BIGINT,
    next_attempt INTEGER, next_incarnation INTEGER, next_spawn_ns BIGINT,
    kind VARCHAR, confidence DOUBLE, root_rank INTEGER, root_host VARCHAR, root_weight INTEGER,
    root_kind VARCHAR, root_message VARCHAR, root_exit_code INTEGER, replica_group INTEGER
);
-- What an incident cost and whom it held up.
CREATE TABLE IF NOT EXISTS d_impact (
    run_id VARCHAR, incident_id INTEGER, held_ranks INTEGER[], restarted_ranks INTEGER[], steps_lost BIGINT,
    quorum_ns BIGINT, reconfigure_ns BIGINT, heal_ns BIGINT, restart_ns BIGINT, stall_ns BIGINT,
    pg VARCHAR, seq BIGINT, missing_ranks INTEGER[], is_isolated BOOLEAN
);
-- The ledger: each planned rank's time cut into intervals of one category.
CREATE TABLE IF NOT EXISTS d_ledger_interval (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    category VARCHAR, step BIGINT, begin_ns BIGINT, end_ns BIGINT
);
CREATE TABLE IF NOT EXISTS d_ledger (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER, host VARCHAR, replica_group INTEGER,
    category VARCHAR, ns BIGINT
);
CREATE TABLE IF NOT EXISTS d_ledger_minute (run_id VARCHAR, bucket_ns BIGINT, category VARCHAR, ns BIGINT);
CREATE TABLE IF NOT EXISTS d_ledger_step (run_id VARCHAR, attempt INTEGER, step BIGINT, category VARCHAR, ns BIGINT);
-- Start-up, exclusive: each moment of a rank's start-up belongs to one phase.
CREATE TABLE IF NOT EXISTS d_init_rank (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    phase VARCHAR, ordinal INTEGER, begin_ns BIGINT, end_ns BIGINT, duration_ns BIGINT
);
CREATE TABLE IF NOT EXISTS d_init_phase (
    run_id VARCHAR, attempt INTEGER, phase VARCHAR, ordinal INTEGER, ranks INTEGER,
    p50_s DOUBLE, p95_s DOUBLE, p99_s DOUBLE, max_s DOUBLE, max_rank INTEGER
);
-- How a group's ranks came together in a step: when the first, the middle and the last two came.
CREATE TABLE IF NOT EXISTS d_meeting (
    run_id VARCHAR, attempt INTEGER, pg VARCHAR, step BIGINT, arrivals BIGINT, first_ns BIGINT, median_ns BIGINT,
    last_ns BIGINT, second_last_ns BIGINT, last_rank INTEGER
);
-- Who came when: per rank and group, from full collectives where they exist, else from roll-ups.
CREATE TABLE IF NOT EXISTS d_lateness (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER, pg VARCHAR,
    basis VARCHAR,               -- 'collective' or 'rollup'
    arrivals BIGINT, late_mean_ns BIGINT, late_p50_ns BIGINT, late_p95_ns BIGINT, late_max_ns BIGINT,
    last_arrivals BIGINT, imposed_ns BIGINT, waited_ns BIGINT
);
-- One row per run: what the runs page, the header and the report start from.
CREATE TABLE IF NOT EXISTS d_run (
    run_id VARCHAR, status VARCHAR, origin VARCHAR, ranks INTEGER, replica_groups INTEGER, hosts INTEGER,
    attempts INTEGER, began_ns BIGINT, ended_ns BIGINT, planned_ns HUGEINT, queue_ns HUGEINT, absent_ns HUGEINT,
    effective_ns HUGEINT, effective_mfu_ns HUGEINT, mfu_reference DOUBLE,
    time_to_start_ns BIGINT, time_to_recover_ns BIGINT, time_to_recover_max_ns BIGINT, failures INTEGER,
    steps_committed BIGINT, steps_lost BIGINT, reference_step_ns BIGINT, step_efficiency DOUBLE,
    ranks_expected INTEGER, ranks_reporting INTEGER, dropped BIGINT, errors BIGINT, as_of_ns BIGINT,
    last_commit_ns BIGINT, is_stepping BOOLEAN, -- the newest attempt has begun its first step
    framework VARCHAR, backend VARCHAR, device_kind VARCHAR, command VARCHAR
);
