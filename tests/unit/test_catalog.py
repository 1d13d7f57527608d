"""Every public view and column is documented; install and refresh can be repeated."""

import duckdb
import pytest
from facts import FactBuilder, empty_store, ledger

from rankscope.analytics import catalog

# What other parts of the project read, view by view.
CONTRACT = {
    "v_run": "run_id status origin ranks replica_groups hosts attempts began_ns ended_ns wall_ns began_at "
    "wall_s time_to_start_s time_to_recover_s time_to_recover_max_s failures steps_committed steps_lost "
    "ett_time ett_capacity reference_step_ns ranks_expected ranks_reporting dropped errors as_of_ns "
    "framework backend device_kind command",
    "v_attempt": "run_id attempt launch_id restart_count world_size ranks_reporting began_ns first_step_ns "
    "ended_ns end_reason first_step last_step steps_kept steps_lost init_s",
    "v_rank": "run_id attempt rank incarnation host local_rank pid replica_group spawn_ns began_ns ended_ns "
    "exit_code last_step",
    "v_step": "run_id attempt rank incarnation step begin_ns end_ns duration_ns committed kept lost_reason",
    "v_step_summary": "run_id attempt step ranks begin_ns end_ns p50_ns p95_ns max_ns max_rank kept",
    "v_init_rank": "run_id attempt rank phase ordinal begin_ns end_ns duration_ns",
    "v_init_phase": "run_id attempt phase ordinal ranks p50_s p99_s max_s max_rank",
    "v_ledger": "run_id attempt rank incarnation host replica_group category ns",
    "v_ledger_interval": "run_id attempt rank category begin_ns end_ns",
    "v_ledger_minute": "run_id bucket_ns category ns",
    "v_incident": "run_id incident_id attempt began_ns detected_ns recovered_ns kind verdict confidence "
    "root_rank root_host replica_group missing_ranks pg seq held_ranks restarted_ranks detect_s "
    "quorum_s reconfigure_s restart_s heal_s stall_s steps_lost recovered",
    "v_evidence": "run_id incident_id ordinal role weight kind rank host time_ns observer message "
    "source_path",
}


@pytest.fixture(scope="module")
def store() -> duckdb.DuckDBPyConnection:
    return empty_store()


def test_every_view_and_column_is_documented(store: duckdb.DuckDBPyConnection) -> None:
    undocumented = store.execute(
        """SELECT "view", "column" FROM v_help WHERE meaning = '' OR meaning IS NULL"""
    ).fetchall()
    assert undocumented == []


def test_help_lists_exactly_the_columns_that_views_have(store: duckdb.DuckDBPyConnection) -> None:
    for view in catalog.views():
        columns = [row[0] for row in store.execute(f"DESCRIBE {view.name}").fetchall()]
        helped = store.execute(
            'SELECT "column" FROM v_help WHERE "view" = $view AND "column" IS NOT NULL', {"view": view.name}
        ).fetchall()
        assert [name for (name,) in helped] == columns
        assert set(view.columns) <= set(columns), f"{view.name} documents a column that it has not"


@pytest.mark.parametrize("view", sorted(CONTRACT))
def test_views_have_the_columns_that_others_read(store: duckdb.DuckDBPyConnection, view: str) -> None:
    columns = {row[0] for row in store.execute(f"DESCRIBE {view}").fetchall()}
    assert set(CONTRACT[view].split()) <= columns


def test_every_view_has_a_run_id(store: duckdb.DuckDBPyConnection) -> None:
    for view in catalog.views():
        assert store.execute(f"DESCRIBE {view.name}").fetchall()[0][0] == "run_id", view.name


def test_refresh_can_be_repeated(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("twice")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=20, exit_code=0)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    facts.write(store)
    first = {
        view.name: store.execute(f"FROM {view.name} ORDER BY ALL").fetchall() for view in catalog.views()
    }
    catalog.refresh(store, "twice")
    again = {
        view.name: store.execute(f"FROM {view.name} ORDER BY ALL").fetchall() for view in catalog.views()
    }
    assert first == again
    assert first["v_ledger"]


def test_a_run_in_parts_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = FactBuilder(ranks=5)
    facts.attempt(0)
    for rank in range(5):
        facts.process(0, rank, spawn=0, end=20 + rank, exit_code=0)
        facts.steps(0, rank, begin=5, count=5, seconds=3)
    whole = facts.store()
    monkeypatch.setattr(catalog, "_PART_STEPS", 7)
    parts = facts.store()
    assert ledger(whole) == ledger(parts)
    steps = "SELECT * FROM v_step_summary ORDER BY ALL"
    assert whole.execute(steps).fetchall() == parts.execute(steps).fetchall()


def test_a_failed_refresh_leaves_the_last_good_one(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("kept")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=20, exit_code=0)
    facts.write(store)
    before = ledger(store, "kept")
    with pytest.raises(duckdb.Error), pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "_DERIVED", (*catalog._DERIVED[:-1], "d_process_of_nobody"))
        catalog.refresh(store, "kept")
    assert ledger(store, "kept") == before


def test_views_of_another_version_are_made_anew() -> None:
    facts = FactBuilder("old")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=20, exit_code=0)
    con = facts.store()
    con.execute("ALTER TABLE d_run DROP COLUMN status")
    con.execute("UPDATE d_catalog SET version = 'of yesterday'")
    catalog.install(con)
    assert con.execute("SELECT run_id FROM stale_run").fetchall() == [("old",)]
    catalog.refresh(con, "old")
    assert con.execute("SELECT status FROM v_run").fetchall() == [("finished",)]
