-- A rank inside a collective before its last member came: nothing else it could do. Asynchronous ones that another
-- asynchronous one follows are hidden behind compute and do not count; nothing is left to hide the last one behind.
SELECT run_id, attempt, rank, incarnation, pg, seq, step, arrival_ns AS begin_ns,
       least(last_arrival_ns, coalesce(end_ns, last_arrival_ns)) AS end_ns, source_id
FROM s_arrival
WHERE NOT is_hidden AND last_arrival_ns > arrival_ns
