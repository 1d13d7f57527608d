-- Grain: one minute in several, at most about $points. Effective training time of the hour up to it, and so far.
WITH numbered AS (
    SELECT
        bucket_ns, ett_capacity, ett_time, ett_capacity_hour,
        row_number() OVER (ORDER BY bucket_ns) AS place, count(*) OVER () AS minutes
    FROM v_ett_hour
    WHERE run_id = $run
)
SELECT bucket_ns AS time_ns, ett_capacity, ett_time, ett_capacity_hour AS ett_capacity_window
FROM numbered
WHERE place % greatest(minutes // $points, 1) = 0 OR place = minutes
ORDER BY bucket_ns
