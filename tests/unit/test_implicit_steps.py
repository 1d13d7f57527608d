"""Where a trainer's steps begin and end when it does not say so."""

import time
from typing import Any

import pytest

from rankscope.ingest.hooks.steps import Steps
from rankscope.ingest.layout import NO_STEP, Flag


class Optimizer:
    """Stands for one."""


class FakeRecorder:
    def __init__(self) -> None:
        self.explicit_steps = False
        self.step_number = NO_STEP
        self.open: list[int] = []
        self.ended: list[tuple[int, int]] = []
        self.began_ns: list[int] = []
        self.scalars: list[tuple[str, float]] = []

    def begin(self, category: str, name: str = "", step: int = NO_STEP) -> tuple[int, ...]:
        self.open.append(step)
        return (1, 2, 3, 4, step, 6)

    def end(self, token: tuple[int, ...], flags: int = 0) -> None:
        self.open.remove(token[4])
        self.began_ns.append(token[0])
        self.ended.append((token[4], flags))

    def scalar(self, name: str, value: float) -> None:
        self.scalars.append((name, value))


@pytest.fixture
def recorder() -> Any:
    return FakeRecorder()


def _update(steps: Steps, recorder: Any, optimizer: Optimizer, passes: int = 1) -> None:
    for _ in range(passes):
        steps.data()
        steps.model_pass(recorder)
        steps.backward(recorder)
    steps.updating(recorder, optimizer)
    steps.updated(recorder, optimizer)


def _numbers(recorder: Any) -> list[int]:
    return [number for number, _ in recorder.ended]


def test_each_update_ends_a_step(recorder: Any) -> None:
    steps, optimizer = Steps(), Optimizer()
    steps.made()
    for _ in range(3):
        _update(steps, recorder, optimizer)
    assert recorder.ended == [(number, Flag.COMMITTED) for number in range(3)]
    assert (recorder.open, recorder.step_number) == ([], 3)


def test_updates_alone_reach_from_one_to_the_next(recorder: Any) -> None:
    steps, optimizer = Steps(), Optimizer()
    steps.made()
    ended_ns = []
    for _ in range(3):
        steps.updating(recorder, optimizer)
        steps.updated(recorder, optimizer)
        ended_ns.append(time.monotonic_ns())
    assert _numbers(recorder) == [0, 1, 2]
    # The first begins where it was opened, for want of anything before it; see FakeRecorder.begin.
    assert recorder.began_ns[0] == 1
    assert recorder.began_ns[1] <= ended_ns[0] <= recorder.began_ns[2] <= ended_ns[1]


def test_gradients_of_several_passes_make_one_step(recorder: Any) -> None:
    steps, optimizer = Steps(), Optimizer()
    steps.made()
    for _ in range(2):
        _update(steps, recorder, optimizer, passes=4)
    assert _numbers(recorder) == [0, 1]
    assert recorder.scalars == [("backward_passes_per_step", 4)]


def test_nothing_is_added_where_the_trainer_marks_its_steps(recorder: Any) -> None:
    steps, optimizer = Steps(), Optimizer()
    steps.made()
    recorder.explicit_steps = True
    _update(steps, recorder, optimizer)
    assert (recorder.open, recorder.ended) == ([], [])


def test_numbers_go_on_from_a_loaded_state(recorder: Any) -> None:
    steps, optimizer = Steps(), Optimizer()
    steps.made()
    steps.resumed(recorder, 40)
    _update(steps, recorder, optimizer)
    assert _numbers(recorder) == [40]


def test_two_optimizers_that_take_turns_make_one_step(recorder: Any) -> None:
    steps, generator, critic = Steps(), Optimizer(), Optimizer()
    steps.made()
    for _ in range(3):
        _update(steps, recorder, generator)
        _update(steps, recorder, critic)
    assert _numbers(recorder) == [0, 1, 2]


def test_a_second_phase_with_an_optimizer_of_its_own_goes_on(recorder: Any) -> None:
    steps, first = Steps(), Optimizer()
    steps.made()
    _update(steps, recorder, first)
    second = Optimizer()
    for _ in range(3):
        _update(steps, recorder, second)  # the first of these is taken for part of a longer step
    assert _numbers(recorder) == [0, 1, 2]
    del first, second
    _update(steps, recorder, Optimizer())
    assert _numbers(recorder) == [0, 1, 2, 3]


def test_an_evaluation_opens_no_step(recorder: Any) -> None:
    steps, optimizer = Steps(), Optimizer()
    steps.made()
    _update(steps, recorder, optimizer)
    for _ in range(5):
        steps.data()  # batches come, but nothing is computed with gradients
    assert recorder.open == []
