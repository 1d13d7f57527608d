-- Grain: name of a scalar that the run recorded.
SELECT name, count(*) AS points
FROM v_scalar
WHERE run_id = $run
GROUP BY name
ORDER BY name = 'loss' DESC, name
