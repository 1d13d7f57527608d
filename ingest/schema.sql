-- The facts: what was observed, by whom, when. Verdicts live in analytics/ and can be recomputed from these.
--
-- *_ns  BIGINT nanoseconds: times since the Unix epoch on the writer's own clock, durations as such.
-- A row of a process is found by (run_id, attempt, rank, incarnation). rank -1 is a launcher or another
-- process that is not a rank; incarnation is 0 unless replica groups come and go inside one attempt.
-- `source_id` leads to the file or stream that a row came from (table `source`).

CREATE TABLE IF NOT EXISTS schema_version (version INTEGER, applied_ns BIGINT);

-- One logical training over all its restarts.
CREATE TABLE IF NOT EXISTS run (
    run_id VARCHAR PRIMARY KEY,
    began_ns BIGINT,             -- first sign of it
    planned_ranks INTEGER,       -- ranks it was meant to have
    command VARCHAR,
    framework VARCHAR,           -- 'torch 2.13.0'
    backend VARCHAR,             -- 'gloo', 'nccl'
    device_kind VARCHAR,         -- 'cpu', 'cuda NVIDIA H100'
    origin VARCHAR,              -- 'recorded', 'imported', 'emulated' or 'simulated'
    attrs JSON
);

-- One generation of a run's workers: a launch, or a restart by the launcher.
CREATE TABLE IF NOT EXISTS attempt (
    run_id VARCHAR,
    attempt INTEGER,             -- 0, 1, 2 … in order of first sight
    launch_id VARCHAR,           -- same for all restarts of one launch
    restart_count INTEGER,       -- the launcher's own count
    world_size INTEGER,
    began_ns BIGINT,
    attrs JSON,
    PRIMARY KEY (run_id, attempt)
);

-- One process of an attempt, as it described itself (or as its launcher saw it).
CREATE TABLE IF NOT EXISTS rank (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    host VARCHAR, local_rank INTEGER, pid INTEGER, device VARCHAR,
    replica_group INTEGER,       -- unit of fault tolerance; null without one
    mesh JSON,                   -- {"dp": 0, "pp": 1, "tp": 0} coordinates, where known
    spawn_ns BIGINT,             -- the process was started (kernel's start time)
    began_ns BIGINT,             -- the recorder opened
    wall_ns BIGINT, mono_ns BIGINT,  -- clock pair taken together at began_ns
    role VARCHAR,                -- 'rank', 'launcher', 'coordinator'
    attrs JSON,
    source_id BIGINT
);

-- The end of a process, as somebody saw it. Several observers may report one end.
CREATE TABLE IF NOT EXISTS process_exit (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    pid INTEGER, host VARCHAR,
    time_ns BIGINT,
    exit_code INTEGER,           -- negative: killed by that signal; null: unknown
    observer VARCHAR,            -- 'self' (atexit), 'launcher', 'torchelastic', 'collector'
    attrs JSON,
    source_id BIGINT
);

-- Something with a begin and an end: init phases, steps, data wait, checkpoint, eval, heal, reconfigure.
CREATE TABLE IF NOT EXISTS span (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    category VARCHAR,            -- SpanCategory in ingest/vocabulary.py
    name VARCHAR,
    step BIGINT,                 -- optimizer step it belongs to; null outside steps
    committed BOOLEAN,           -- steps only: the optimizer's update was applied
    begin_ns BIGINT, end_ns BIGINT,
    status VARCHAR,              -- 'ok', 'error'
    thread INTEGER,              -- 0 is the main thread
    attrs JSON,
    source_id BIGINT
);

-- What had begun and not ended when its source was last read: a dead process' last act. Same meaning as `span`.
CREATE TABLE IF NOT EXISTS open_span (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    category VARCHAR, name VARCHAR, step BIGINT, begin_ns BIGINT, thread INTEGER, attrs JSON,
    slot BIGINT,                 -- record that began it, within its source's stream
    source_id BIGINT
);

CREATE TABLE IF NOT EXISTS process_group (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,  -- the process that said so
    pg VARCHAR,                  -- its name, the same on every member
    description VARCHAR, backend VARCHAR,
    ranks INTEGER[],             -- ordered members, global ranks
    created_ns BIGINT, attrs JSON, source_id BIGINT
);

-- One collective on one rank, in full detail: first steps, sampled ranks, around incidents.
CREATE TABLE IF NOT EXISTS collective (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    pg VARCHAR, seq BIGINT,      -- position in its group, from 0
    op VARCHAR, dtype VARCHAR, sizes VARCHAR, bytes BIGINT, site VARCHAR,  -- site: 'file.py:123 in train'
    step BIGINT,
    enqueue_ns BIGINT, start_ns BIGINT, end_ns BIGINT,  -- end_ns null: not complete when last read
    state VARCHAR,               -- 'scheduled', 'started', 'completed', 'error'
    is_async BOOLEAN, is_p2p BOOLEAN, device_ns BIGINT, attrs JSON,
    slot BIGINT, source_id BIGINT
);

-- All collectives of one rank, step and group in one row.
CREATE TABLE IF NOT EXISTS collective_rollup (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    step BIGINT, pg VARCHAR,
    count BIGINT, bytes BIGINT, total_ns BIGINT, max_ns BIGINT,
    first_enqueue_ns BIGINT, last_enqueue_ns BIGINT, last_end_ns BIGINT, last_seq BIGINT,
    source_id BIGINT
);

CREATE TABLE IF NOT EXISTS quorum (
    run_id VARCHAR, quorum_id BIGINT, time_ns BIGINT, reason VARCHAR, max_step BIGINT, observer VARCHAR,
    attrs JSON, source_id BIGINT
);
CREATE TABLE IF NOT EXISTS quorum_member (
    run_id VARCHAR, quorum_id BIGINT, replica_group INTEGER, replica_id VARCHAR, incarnation INTEGER,
    step BIGINT, healing BOOLEAN, heal_source VARCHAR, participating BOOLEAN, attrs JSON, source_id BIGINT
);

-- One piece of failure evidence.
CREATE TABLE IF NOT EXISTS signal (
    run_id VARCHAR, attempt INTEGER,
    rank INTEGER,                -- the rank it speaks of; null when it names none
    incarnation INTEGER, host VARCHAR,
    time_ns BIGINT,              -- when it happened, as far as the evidence tells
    observed_ns BIGINT,          -- when its observer noticed
    kind VARCHAR,                -- SignalKind in ingest/vocabulary.py
    failure_kind VARCHAR,        -- FailureKind
    observer VARCHAR, message VARCHAR, attrs JSON, source_id BIGINT
);

CREATE TABLE IF NOT EXISTS scalar (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    step BIGINT, name VARCHAR, value DOUBLE, time_ns BIGINT, source_id BIGINT
);

-- Last sign of life of a process, one row per source, replaced as it lives.
CREATE TABLE IF NOT EXISTS heartbeat (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER, host VARCHAR, pid INTEGER,
    last_ns BIGINT,              -- last record of any kind, writer's clock
    step BIGINT, source_id BIGINT PRIMARY KEY
);

-- A pair of one process' clocks; from these and from collectives that end together, offsets are estimated.
CREATE TABLE IF NOT EXISTS clock_pair (
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER, host VARCHAR,
    wall_ns BIGINT, mono_ns BIGINT, source_id BIGINT
);
-- Offset of a host's clock against the run's reference host: true = raw - offset_ns, with an interval.
CREATE TABLE IF NOT EXISTS host_clock (
    run_id VARCHAR, host VARCHAR, time_ns BIGINT,
    offset_ns BIGINT, offset_low_ns BIGINT, offset_high_ns BIGINT, drift_ppm DOUBLE, method VARCHAR,
    PRIMARY KEY (run_id, host)
);

-- A file or stream that was read: the exactly-once ledger, and the coverage.
CREATE TABLE IF NOT EXISTS source (
    source_id BIGINT PRIMARY KEY,
    run_id VARCHAR, attempt INTEGER, rank INTEGER, incarnation INTEGER,
    kind VARCHAR,                -- 'segment', 'watchdog_log', …
    stream VARCHAR UNIQUE,       -- its identity: '<run>/<host>-<pid>-<start>'; for files path + content hash
    path VARCHAR,
    next_slot BIGINT,            -- first record not yet committed (segments), bytes read (files)
    records BIGINT, dropped BIGINT, errors BIGINT, last_error VARCHAR,
    writer_dropped BIGINT,       -- the part of dropped that the writer itself counted
    complete BOOLEAN,            -- nothing more will come
    updated_ns BIGINT
);
CREATE SEQUENCE IF NOT EXISTS source_seq START 1;

-- Runs that got facts which nothing derived from them shows yet; one row a transaction, taken out by who derives.
CREATE TABLE IF NOT EXISTS stale_run (run_id VARCHAR, since_ns BIGINT);
