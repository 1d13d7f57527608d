-- Grain: the one run. Header of every page of a run.
SELECT * FROM v_run WHERE run_id = $run
