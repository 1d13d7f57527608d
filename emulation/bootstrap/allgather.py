"""All ranks learn what each of them has: an AllGather over a formed ring, one way or both ways at once."""

from collections.abc import Sequence
from time import monotonic
from typing import Final, Literal

from rankscope.emulation.bootstrap.channel import (
    HEADER,
    ORIGIN,
    Aborted,
    Buffer,
    Channel,
    PeerGone,
    Silence,
    exchange,
)
from rankscope.emulation.bootstrap.ring import Ring

Sizes = Literal["first", "overlapped", "along"]
PHASE: Final = "allgather"
_MOST_BYTES: Final = 16 << 20


class RingAllGather:
    """Gathers one chunk a rank over `ring`.

    Args:
        both: chunks travel both ways, ⌊N/2⌋ rounds instead of N - 1.
        sizes: 'first' sends each chunk's size ahead and waits for it, one direction after the other, as NCCL
            does; 'overlapped' both directions at once; 'along' sends it with the chunk: fewest dependent
            phases.
        timeout_s: for a whole gather; a neighbour that is silent for so long is named.
        most_bytes: of one chunk; more is a lie.
    """

    def __init__(
        self,
        ring: Ring,
        *,
        both: bool = True,
        sizes: Sizes = "along",
        timeout_s: float = 300.0,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        if sizes not in ("first", "overlapped", "along"):
            raise ValueError(f"sizes {sizes!r}: 'first', 'overlapped' or 'along'")
        self.ring, self.both, self.sizes = ring, both, sizes
        self.timeout_s, self.most_bytes = timeout_s, most_bytes

    def gather(self, chunk: bytes) -> list[bytes]:
        """What every rank gave, by rank; all ranks must call it, in the same order of calls.

        Raises:
            BootstrapError: names the rank that died, is silent or sent what cannot be.
            ValueError: the chunk is larger than `most_bytes`.
        """
        return self.ring.loop.run(self.gather_on(chunk))

    async def gather_on(self, chunk: bytes) -> list[bytes]:
        """`gather` as a coroutine on the ring's loop."""
        if len(chunk) > self.most_bytes:
            raise ValueError(f"a chunk of {len(chunk)} bytes, above most_bytes ({self.most_bytes})")
        ring, n, me = self.ring, self.ring.world, self.ring.rank
        deadline = monotonic() + self.timeout_s
        chunks: list[bytes | None] = [None] * n
        chunks[me] = chunk
        try:
            if self.both:
                for k in range((n - 1) // 2):
                    right, left = (me - k) % n, (me + k) % n
                    await self._round(
                        chunks, [(ring.next, right), (ring.previous, left)],
                        [(ring.previous, (right - 1) % n), (ring.next, (left + 1) % n)], deadline,
                    )  # fmt: skip
                if n % 2 == 0:  # the rank opposite is reached one way only
                    await self._one_way(chunks, n // 2 - 1, deadline)
            else:
                for k in range(n - 1):
                    await self._one_way(chunks, k, deadline)
        except (PeerGone, Aborted, Silence) as cause:
            raise ring.fail(PHASE, cause) from cause
        return [part for part in chunks if part is not None]

    async def _one_way(self, chunks: list[bytes | None], k: int, deadline: float) -> None:
        ring, n = self.ring, self.ring.world
        mine = (ring.rank - k) % n
        await self._round(chunks, [(ring.next, mine)], [(ring.previous, (mine - 1) % n)], deadline)

    async def _round(
        self,
        chunks: list[bytes | None],
        out: Sequence[tuple[Channel, int]],
        into: Sequence[tuple[Channel, int]],
        deadline: float,
    ) -> None:
        """Send the chunks of some origins, receive those of others; `out` and `into` pair up by direction."""
        loop, counts = self.ring.loop, self.ring.counts
        parts = [chunks[origin] or b"" for _, origin in out]
        heads = [HEADER.pack(origin, len(p)) for (_, origin), p in zip(out, parts, strict=True)]
        got = [bytearray(HEADER.size) for _ in into]
        waiting = [(channel, memoryview(head)) for (channel, _), head in zip(into, got, strict=True)]
        ahead: list[tuple[Channel, Buffer]] = [(c, h) for (c, _), h in zip(out, heads, strict=True)]
        if self.sizes == "along":
            whole = [(c, h + p) for (c, _), h, p in zip(out, heads, parts, strict=True)]
            await exchange(loop, whole, waiting, deadline)
        elif self.sizes == "overlapped":
            await exchange(loop, ahead, waiting, deadline)
        else:
            for sent, received in zip(ahead, waiting, strict=True):
                await exchange(loop, [sent], [received], deadline)
        if self.sizes != "along":
            counts.size_messages += len(out)
        # A chunk that travels apart from its header begins with its origin again, as every message.
        lead = 0 if self.sizes == "along" else ORIGIN.size
        bodies = [bytearray(self._size(head, c, o) + lead) for (c, o), head in zip(into, got, strict=True)]
        landing = [(channel, memoryview(body)) for (channel, _), body in zip(into, bodies, strict=True)]
        data: list[tuple[Channel, Buffer]] = []
        if self.sizes != "along":
            data = [(c, ORIGIN.pack(o) + p) for (c, o), p in zip(out, parts, strict=True)]
        await exchange(loop, data, landing, deadline)
        counts.hops += len(out)
        for (channel, origin), body in zip(into, bodies, strict=True):
            if lead:
                self._check_origin(ORIGIN.unpack_from(body)[0], channel, origin, body)
            chunks[origin] = bytes(body[lead:])

    def _size(self, head: bytearray, channel: Channel, expected: int) -> int:
        origin, size = HEADER.unpack(head)
        self._check_origin(origin, channel, expected, head)
        if size > self.most_bytes:
            what = f"announced {size} bytes of rank {origin}, above the {self.most_bytes} that are allowed"
            raise self.ring.lied(PHASE, channel.peer, what)
        return int(size)

    def _check_origin(self, origin: int, channel: Channel, expected: int, message: bytearray) -> None:
        if origin < 0:
            raise channel.abort_after(bytes(message)) or PeerGone(channel.peer)
        if origin != expected:
            what = f"sent the chunk of rank {origin} where that of rank {expected} was due"
            raise self.ring.lied(PHASE, channel.peer, what)
