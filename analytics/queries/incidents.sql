-- Grain: incident, in order of time.
SELECT * FROM v_incident WHERE run_id = $run ORDER BY began_ns
