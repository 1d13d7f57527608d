-- One row per quorum view: who trained together from when on.
--   quorum_id: Its number
--   reason: Why it was formed
--   max_step: Highest step among its members
--   members: Replica groups in it
--   participating: Of them, contributing
--   healing: Of them, receiving state
--   member_groups: Replica groups in it, in order
--   healing_groups: Replica groups receiving state
--   observer: Who told
SELECT q.run_id, q.quorum_id, min(q.time_ns) AS time_ns, make_timestamp_ns(min(q.time_ns)) AS time_at,
       any_value(q.reason) AS reason, max(q.max_step) AS max_step, count(DISTINCT m.replica_group) AS members,
       count(DISTINCT m.replica_group) FILTER (WHERE m.participating) AS participating,
       count(DISTINCT m.replica_group) FILTER (WHERE m.healing) AS healing,
       coalesce(list(DISTINCT m.replica_group ORDER BY m.replica_group) FILTER (WHERE m.replica_group IS NOT NULL), [])
           AS member_groups,
       coalesce(list(DISTINCT m.replica_group ORDER BY m.replica_group) FILTER (WHERE m.healing), []) AS healing_groups,
       any_value(q.observer) AS observer
FROM quorum q LEFT JOIN quorum_member m USING (run_id, quorum_id)
GROUP BY q.run_id, q.quorum_id
