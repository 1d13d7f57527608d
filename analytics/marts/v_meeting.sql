-- How the ranks of a process group came together, step by step: one row per attempt, group and step, from the first
-- collective of the step on each rank.
--   arrivals: Ranks that came
--   first_ns: First arrival
--   skew_ns: Last less first arrival
--   late_ns: Last less median arrival
--   last_rank: Who came last
--   imposed_ns: Wait that the last one imposed on the others: (last - second last) x others
SELECT run_id, attempt, pg, step, arrivals, first_ns, last_ns - first_ns AS skew_ns, last_ns - median_ns AS late_ns,
       last_rank, (last_ns - second_last_ns) * (arrivals - 1) AS imposed_ns
FROM d_meeting
