-- What can I ask for?
FROM v_help
