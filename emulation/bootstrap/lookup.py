"""The two things a rank wants from a store, over any torch.distributed.Store: set my key, "
"get my neighbour's."""

from time import monotonic
from typing import Any, Final, Protocol

from rankscope.emulation.bootstrap.loop import Loop

_FIRST_PAUSE_S: Final = 0.001
_LONGEST_PAUSE_S: Final = 1.0


class Lookup(Protocol):
    """A store as coroutines see it."""

    async def set(self, key: str, value: bytes) -> None:
        """Publish; RuntimeError when the store does not answer."""

    async def get(self, key: str, deadline: float) -> bytes:
        """Wait for and read a key; TimeoutError when it is not there at `deadline` (monotonic, s)."""


class PollingLookup:
    """Asks whether the key is there, and again with growing pauses: a rank that waits must not block.

    The store's own wait would, and the previous rank would find nobody at home.
    """

    def __init__(self, loop: Loop, store: Any) -> None:
        self._loop, self._store = loop, store

    async def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)

    async def get(self, key: str, deadline: float) -> bytes:
        pause = _FIRST_PAUSE_S
        while not self._store.check([key]):
            if monotonic() >= deadline:
                raise TimeoutError
            await self._loop.pause(min(pause, max(0.0, deadline - monotonic())))
            pause = min(_LONGEST_PAUSE_S, 1.5 * pause)
        return bytes(self._store.get(key))
