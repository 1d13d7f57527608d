"""Process groups as this process knows them: their name, members, and what has been counted on each."""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from rankscope.ingest.recorder import Recorder


class Group:
    """One process group: positions of its collectives, and of its messages by peer and direction."""

    def __init__(self, name: str, ranks: list[int]) -> None:
        self.name = name
        self.ranks = ranks
        self.used = False  # a collective has run on it: its communicator is there
        self.sequence = itertools.count()
        self.messages: defaultdict[tuple[str, int], Iterator[int]] = defaultdict(itertools.count)


class Groups:
    """Finds the Group of a torch process group; each is described to the recorder when first met."""

    def __init__(self, c10d: ModuleType) -> None:
        self._c10d = c10d
        self._known: dict[Any, Group] = {}

    def of(self, recorder: Recorder, pg: Any) -> Group | None:
        """The group `pg`, None standing for the default one; None when this process is not in it."""
        if pg is None:
            pg = self._c10d.GroupMember.WORLD
            if pg is None:
                return None  # not initialised: torch will say so in its own words
        found = self._known.get(pg)
        return found if found is not None else self._meet(recorder, pg)

    def forget(self) -> None:
        """Groups were destroyed: keep only those that are left."""
        alive = self._c10d._world.pg_map
        self._known = {pg: group for pg, group in self._known.items() if pg in alive}

    def _meet(self, recorder: Recorder, pg: Any) -> Group | None:
        if not isinstance(pg, self._c10d.ProcessGroup):
            return None  # NON_GROUP_MEMBER
        name = str(getattr(pg, "group_name", "") or self._c10d._get_process_group_name(pg))
        ranks = [int(rank) for rank in self._c10d.get_process_group_ranks(pg)]
        group = self._known[pg] = Group(name, ranks)
        recorder.process_group(
            name, ranks, str(self._c10d.get_backend(pg)), str(getattr(pg, "group_desc", "") or "")
        )
        return group
