-- Eight phases of start-up on every rank, one after another; the communicator's time varies by rank.
INSERT INTO span BY NAME
SELECT $run AS run_id, $attempt AS attempt, r::INTEGER AS rank, 0 AS incarnation, 'init' AS category, p.name,
       $spawn + p.low * 3000000000 + hash(r) % 1000000000 AS begin_ns,
       $spawn + p.high * 3000000000 + hash(r, p.name) % 1000000000 AS end_ns, 'ok' AS status, 0 AS thread,
       $attempt * $ranks + r AS source_id
FROM range($ranks) t(r), (VALUES ('spawn', 1, 2), ('import', 2, 12), ('rendezvous', 12, 20), ('store', 20, 30),
     ('process_group', 20, 50), ('communicator', 50, 75), ('model', 75, 85), ('checkpoint_load', 85, 98)) p(name, low, high)
