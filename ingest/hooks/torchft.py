"""torchft: quorums, reconfigured groups, healing, and steps that commit or do not.

torchft itself tells little: no members, no durations, no heal. So the Manager's methods are wrapped, and what
it holds: its process group, its checkpoint transport, its client. Two generations: `configure` (0.2) and
`reconfigure` (nightlies of 2026). Names that begin with _ may go away: then that part is not recorded.
"""

import functools
import re
import time
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks import begin
from rankscope.ingest.hooks.guard import Guard, around
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.startup import startup
from rankscope.ingest.launcher.failures import kind_of
from rankscope.ingest.layout import Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import SignalKind, SpanCategory

_guard = Guard("torchft")
_steps: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # manager -> open step
_quorums: "weakref.WeakKeyDictionary[Any, int]" = (
    weakref.WeakKeyDictionary()
)  # manager -> last quorum told of


def attach(module: ModuleType) -> None:
    """Watch the Manager class of torchft.manager."""
    manager = module.Manager
    manager.__init__ = _watched_init(manager.__init__)
    for name, enter, leave in (
        ("start_quorum", _begin_step, None),
        ("wait_quorum", _spanned(SpanCategory.QUORUM, "wait"), _end_span),
        ("_async_quorum", _spanned(SpanCategory.QUORUM, "quorum"), _end_span),
        ("_apply_pending_state_dict", _spanned(SpanCategory.HEAL, "apply"), _end_span),
        ("report_error", _report, None),
        ("should_commit", _before_commit, _commit),
    ):
        original = getattr(manager, name, None)
        if original is not None:
            setattr(manager, name, around(_guard, original, enter, leave or _nothing))


def _watched_init(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        with _guard:
            begin.as_rank()
            recorder = rank_recorder()
            if recorder is not None:
                recorder.explicit_steps = True  # they are ours to mark: an update may not be committed
                startup.uses_torch(recorder)
                _watch_parts(self)
                group = replica_group_of(str(getattr(self, "_replica_id", "")))
                if recorder.identity.replica_group is None and group is not None:
                    recorder.event("rank_update", replica_group=group)

    return init


def _watch_parts(manager: Any) -> None:
    """Wrap what this manager holds, on these objects only."""
    for holder, names, category in (
        (getattr(manager, "_pg", None), ("reconfigure", "configure"), SpanCategory.RECONFIGURE),
        (
            getattr(manager, "_checkpoint_transport", None),
            ("send_checkpoint", "recv_checkpoint"),
            SpanCategory.HEAL,
        ),
    ):
        for name in names:
            original = getattr(holder, name, None)
            if original is not None:
                watched = around(_guard, original, _spanned(category, name), _end_span)
                setattr(holder, name, watched)
    client = getattr(manager, "_client", None)
    if hasattr(client, "_quorum"):
        manager._client = _Client(client, manager)


class _Client:
    """The manager's client, with the quorum it gets looked at in passing."""

    def __init__(self, client: Any, manager: Any) -> None:
        self._client = client
        self._manager = weakref.ref(manager)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _quorum(self, *args: Any, **kwargs: Any) -> Any:
        result = self._client._quorum(*args, **kwargs)
        if not _guard.off:
            with _guard:
                _tell_quorum(self._manager(), result)
        return result


def _tell_quorum(manager: Any, quorum: Any) -> None:
    recorder = rank_recorder()
    if recorder is None or manager is None or _quorums.get(manager) == quorum.quorum_id:
        return
    before = _quorums.get(manager)
    _quorums[manager] = quorum.quorum_id
    now = time.time_ns()
    recorder.event(
        "quorum", quorum_id=quorum.quorum_id, time_ns=now, max_step=quorum.max_step, observer="torchft",
        reason="first" if before is None else "members changed", replica_world_size=quorum.replica_world_size,
    )  # fmt: skip
    healing = set(getattr(quorum, "recover_dst_replica_ranks", ()))
    if quorum.heal:
        healing.add(quorum.replica_rank)
    source = getattr(quorum, "recover_src_replica_rank", None)
    members = list(getattr(quorum, "replica_ids", ()))
    for place, member in enumerate(members):
        recorder.event(
            "quorum_member", quorum_id=quorum.quorum_id, replica_group=replica_group_of(member),
            replica_id=member, step=quorum.max_step, healing=place in healing, participating=True,
            heal_source=members[source] if quorum.heal and place == quorum.replica_rank and source is not None
            and source < len(members) else None,
        )  # fmt: skip
    if before is not None:
        recorder.signal(
            SignalKind.QUORUM, None,
            f"quorum {quorum.quorum_id} has {quorum.replica_world_size} replica groups",
            observer="torchft", quorum_id=quorum.quorum_id, replica_ids=members,
        )  # fmt: skip


def replica_group_of(replica_id: str) -> int | None:
    """The number in a replica's id: 2 of 'train_ddp_2:9f0c…' (what follows the colon is one incarnation)."""
    found = re.search(r"(\d+)$", replica_id.partition(":")[0])
    return int(found[1]) if found else None


def _nothing(token: Any, result: Any, error: BaseException | None) -> None:
    return None


def _spanned(category: SpanCategory, name: str) -> Callable[..., Any]:
    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        recorder = rank_recorder()
        return None if recorder is None else (recorder, recorder.begin(category, name))

    return enter


def _end_span(entered: tuple[Recorder, Any], result: Any, error: BaseException | None) -> None:
    entered[0].end(entered[1], Flag.ERROR if error is not None else 0)


def _begin_step(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    manager, recorder = args[0], rank_recorder()
    if recorder is None:
        return
    left = _steps.pop(manager, None)
    if left is not None:
        recorder.end(left, Flag.NOT_COMMITTED)
    recorder.step_number = int(manager.current_step())
    _steps[manager] = recorder.begin(SpanCategory.STEP, step=recorder.step_number)


def _report(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    recorder = rank_recorder()
    error = args[1] if len(args) > 1 else kwargs.get("e")
    if recorder is not None and isinstance(error, BaseException):
        text = f"{type(error).__name__}: {error}"
        recorder.signal(
            SignalKind.COLLECTIVE_ERROR, kind_of(text), text, observer="torchft",
            step=recorder.step_number, quorum_id=_quorums.get(args[0]),
        )  # fmt: skip


def _before_commit(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    manager, recorder = args[0], rank_recorder()
    if recorder is None:
        return None
    return recorder, manager, int(manager.current_step()), bool(getattr(manager, "_healing", False))


def _commit(entered: tuple[Recorder, Any, int, bool], result: Any, error: BaseException | None) -> None:
    recorder, manager, step, healing = entered
    token = _steps.pop(manager, None)
    if token is None:
        return
    # A replica that was healed meanwhile took part in a later step than it began.
    number = int(manager.current_step()) - 1 if result and healing else step
    if number != step:
        recorder.end(token, Flag.NOT_COMMITTED)
    else:
        flag = Flag.COMMITTED if result else Flag.NOT_COMMITTED
        recorder.end(token, flag | (Flag.ERROR if error is not None else Flag(0)))
    recorder.step_number = int(manager.current_step())
    recorder.scalar("participants", float(manager.num_participants()), step=number)
