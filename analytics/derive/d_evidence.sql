-- What speaks for a failure, weighed: an exit by a signal before an exception, that before an exit code, and all
-- of them before the errors of ranks that were only waiting. Truth written by a fault injector is left out.
WITH unit AS (
    -- What fails together: the ranks of one lane in one incarnation of one attempt.
    SELECT run_id, attempt, rank, incarnation, lane, host, ended_ns, exit_code, exit_observer, offset_ns, source_id
    FROM d_process WHERE run_id = $run_id
), told AS (
    SELECT s.run_id, s.attempt, coalesce(u.lane, -1) AS lane, coalesce(u.incarnation, 0) AS incarnation, s.rank,
           coalesce(u.host, s.host) AS host,
           coalesce(s.time_ns, s.observed_ns) - coalesce(u.offset_ns, c.offset_ns, 0) AS time_ns,
           coalesce(s.observed_ns, s.time_ns) - coalesce(u.offset_ns, c.offset_ns, 0) AS observed_ns,
           s.kind, s.failure_kind, s.observer, s.message, NULL::INTEGER AS exit_code, s.source_id,
           s.kind IN ('collective_error', 'watchdog', 'flight_recorder', 'nccl_warn')
               OR s.failure_kind = 'network' AND s.kind IN ('exception', 'error_file')
               OR s.kind IN ('exception', 'error_file') AND regexp_matches(coalesce(s.message, ''),
                      '(?i)connection (closed|reset|refused)|gloo|nccl|distbackend|process ?group|broken pipe|signalexception')
               AS is_collateral
    FROM signal s
    LEFT JOIN unit u ON u.run_id = s.run_id AND u.attempt = s.attempt AND u.rank = s.rank
                    AND u.incarnation = coalesce(s.incarnation, 0)
    LEFT JOIN host_clock c ON c.run_id = s.run_id AND c.host = s.host
    WHERE s.run_id = $run_id AND s.kind <> 'injected'
), waiting AS (
    SELECT run_id, attempt, rank, incarnation, bool_or(is_collateral) AND NOT bool_or(
               NOT is_collateral AND kind IN ('exception', 'error_file', 'xid')) AS only_waited
    FROM told WHERE rank IS NOT NULL GROUP BY ALL
), worded AS (
    SELECT run_id, attempt, rank, incarnation, any_value(message) AS message
    FROM told WHERE kind = 'exit' AND message <> '' GROUP BY ALL
), ended AS (
    -- 128 + n is how a shell tells of signal n.
    SELECT u.*, CASE WHEN exit_code > 128 AND exit_code < 160 THEN 128 - exit_code ELSE exit_code END AS code,
           coalesce(w.only_waited, false) AS only_waited, m.message
    FROM unit u
    LEFT JOIN waiting w USING (run_id, attempt, rank, incarnation)
    LEFT JOIN worded m USING (run_id, attempt, rank, incarnation)
    WHERE u.exit_code <> 0
)
SELECT run_id, attempt, lane, incarnation, rank, host, ended_ns AS time_ns, ended_ns AS observed_ns,
       'exit' AS kind, CASE WHEN code < 0 THEN 'crash' ELSE 'exception' END AS failure_kind,
       exit_observer AS observer,
       coalesce(message, CASE WHEN code < 0 THEN 'ended by signal ' || (-code)::INTEGER
                              ELSE 'ended with exit code ' || code::INTEGER END) AS message, code AS exit_code,
       CASE WHEN code IN (-2, -15) THEN 5 WHEN code = -6 AND only_waited THEN 15 WHEN code = -6 THEN 90
            WHEN code < 0 THEN 100 WHEN only_waited THEN 10 ELSE 60 END AS weight,
       source_id
FROM ended
UNION ALL
SELECT run_id, attempt, lane, incarnation, rank, host, time_ns, observed_ns, kind, failure_kind, observer, message,
       exit_code,
       CASE WHEN failure_kind = 'planned' THEN 0 WHEN kind = 'xid' THEN 95 WHEN kind = 'nccl_warn' THEN 8
            WHEN is_collateral THEN 12 WHEN kind IN ('exception', 'error_file') THEN 80
            WHEN failure_kind IS NULL THEN 8 ELSE 20 END,
       source_id
FROM told
-- Of a process whose exit is known, the exit itself says so above.
WHERE kind <> 'exit' OR NOT EXISTS (
    SELECT 1 FROM ended e WHERE e.run_id = told.run_id AND e.attempt = told.attempt AND e.rank = told.rank
                            AND e.incarnation = told.incarnation)
