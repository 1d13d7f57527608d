-- Grain: column of a public view, as documented.
SELECT "view", "column", type, unit, meaning FROM v_help
