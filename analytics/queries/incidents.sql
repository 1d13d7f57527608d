-- Grain: incident, in order of time; the $limit that took longest, those that are not over first. Lists of ranks
-- stay in the store: one of 100,000 is no use on a page (see incident_ranks).
WITH worst AS (
    SELECT
        incident_id, attempt, began_ns, detected_ns, recovered_ns, kind, verdict, confidence, root_rank, root_host,
        replica_group, pg, seq, isolated, detect_s, quorum_s, reconfigure_s, restart_s, heal_s, stall_s, steps_lost,
        recovered, count(*) OVER () AS incidents,
        len(held_ranks) - coalesce(list_contains(held_ranks, root_rank)::INTEGER, 0) AS others_held
    FROM v_incident
    WHERE run_id = $run
    ORDER BY recovered, recovered_ns - began_ns DESC
    LIMIT $limit
)
SELECT * FROM worst ORDER BY began_ns
