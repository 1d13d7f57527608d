"""METRICS §4: the slowdown of a published trace (OSDI '25 artifact), and of two worked out by hand."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankscope.analytics.stragglers import analyse

PUBLISHED = Path(__file__).parents[3] / "shared" / "cases" / "traces" / "straggler_ST.parquet"


@pytest.mark.skipif(not PUBLISHED.exists(), reason=f"the published trace is not at {PUBLISHED}")
def test_published_trace() -> None:
    found = analyse(pq.read_table(PUBLISHED))
    assert found.slowdown == pytest.approx(1.1787021837, abs=5e-11)
    assert found.waste == pytest.approx(0.1516, abs=5e-5)
    assert found.straggling
    assert found.worker_share == pytest.approx(0.03140, abs=5e-6)
    assert found.last_stage_share == pytest.approx(1.21936, abs=5e-6)
    assert found.ignored == ()
    # From the same artifact: a long last stage.
    assert found.by_stage[3] == pytest.approx(1.2322559543, abs=5e-11)
    assert found.by_dp_rank == {
        0: pytest.approx(1.1730828198, abs=5e-11),
        1: pytest.approx(1.1778704237, abs=5e-11),
    }
    assert found.step_s[23] == pytest.approx(2.3396662609, abs=5e-11)
    assert found.ideal_step_s == pytest.approx(1.8432958244, abs=5e-11)


def trace(*rows: tuple[Any, ...]) -> pa.Table:
    """(dp_rank, stage, kind, number, begin, end) of one step."""
    return pa.Table.from_pylist(
        [
            {
                "dp_rank": rank,
                "stage": stage,
                "step": 7,
                "optype": kind,
                "seq_id": number,
                "start_ts": float(begin),
                "duration": float(end - begin),
                "mc": 0,
            }
            for rank, stage, kind, number, begin, end in rows
        ]
    )


def test_one_slow_data_parallel_rank() -> None:
    """Two ranks; the second takes 2 s for its forward instead of 1 s, and the first waits in the scatter.

    T = 0.5 + (2 + 2) + 0.5 + 0.5 = 5.5; ideal, with a forward of 1.5 s: 5.0; with rank 1 at ideal: 5.0.
    """
    found = analyse(
        trace(
            *(
                row
                for rank, forward in ((0, 1), (1, 2))
                for row in (
                    (rank, 0, "params-all-gather", 0, 0, 0.5),
                    (rank, 0, "forward-compute", 0, 0.5, 0.5 + forward),
                    (rank, 0, "backward-compute", 0, 0.5 + forward, 2.5 + forward),
                    (rank, 0, "grads-reduce-scatter", 0, 2.5 + forward, 5),
                    (rank, 0, "optimizer", 0, 5, 5.5),
                )
            )
        )
    )
    assert found.step_s == {7: pytest.approx(5.5)}
    assert found.ideal_step_s == pytest.approx(5.0)
    assert found.slowdown == pytest.approx(1.1)
    assert found.by_dp_rank == {0: pytest.approx(1.0), 1: pytest.approx(1.1)}
    assert found.workers == {(0, 0): pytest.approx(1.0), (1, 0): pytest.approx(1.1)}
    assert found.worker_share == pytest.approx(1.0)
    assert found.last_stage_share == pytest.approx(1.0)


def test_long_last_stage() -> None:
    """Two stages, two microbatches, 1F1B, messages that take no time; the last stage is twice as slow.

    stage 0: F0 0–1, F1 1–2, B0 7–9, B1 13–15; stage 1: F0 1–3, B0 3–7, F1 7–9, B1 9–13; optimizer 15–16.
    Ideal (F 1.5, B 3): 14.5. Last stage at ideal, first as it was: 13, so M_S = (16 − 13)/(16 − 14.5).
    """
    found = analyse(
        trace(
            (0, 0, "forward-compute", 0, 0, 1),
            (0, 0, "forward-send", 0, 1, 1),
            (0, 0, "forward-compute", 1, 1, 2),
            (0, 0, "forward-send", 1, 2, 7),
            (0, 0, "backward-recv", 0, 2, 7),
            (0, 0, "backward-compute", 0, 7, 9),
            (0, 0, "backward-recv", 1, 9, 13),
            (0, 0, "backward-compute", 1, 13, 15),
            (0, 0, "optimizer", 0, 15, 16),
            (0, 1, "forward-recv", 0, 0, 1),
            (0, 1, "forward-compute", 0, 1, 3),
            (0, 1, "backward-compute", 0, 3, 7),
            (0, 1, "backward-send", 0, 7, 7),
            (0, 1, "forward-recv", 1, 7, 7),
            (0, 1, "forward-compute", 1, 7, 9),
            (0, 1, "backward-compute", 1, 9, 13),
            (0, 1, "backward-send", 1, 13, 13),
            (0, 1, "optimizer", 0, 15, 16),
        )
    )
    assert found.step_s == {7: pytest.approx(16)}
    assert found.ideal_step_s == pytest.approx(14.5)
    assert found.by_stage == {0: pytest.approx(13 / 14.5), 1: pytest.approx(17.5 / 14.5)}
    assert found.last_stage_share == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (trace((0, 0, "forward-compute", 0, 0, 1)).drop_columns(["seq_id"]), "lacks the columns seq_id"),
        (trace((0, 0, "forward-compute", 0, 0, 1), (0, 0, "forward-compute", 0, 1, 2)), "twice"),
        (trace((0, 0, "tea", 0, 0, 1)), "no operation of a known kind"),
        (trace((0, 0, "optimizer", 0, 0, 1)), "no forward-compute"),
    ],
)
def test_says_what_is_wrong(table: pa.Table, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        analyse(table)
