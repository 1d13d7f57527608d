-- One row per piece of failure evidence, of whatever weight; truth written by a fault injector included.
--   rank: The rank it speaks of; null: none
--   observed_ns: Its observer noticed
--   kind: What kind of evidence; 'injected' is a fault injector's own record, which no verdict uses
--   failure_kind: What kind of failure it points to
--   observer: Who noticed
--   message: What it says
--   attrs: More, as JSON
SELECT run_id, attempt, rank, incarnation, host, time_ns, make_timestamp_ns(time_ns) AS time_at, observed_ns, kind,
       failure_kind, observer, message, attrs, source_id
FROM signal
