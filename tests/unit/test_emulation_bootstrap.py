"""The bootstrap library: rings form, data arrives, and whoever is to blame is named."""

import socket
import struct
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

import pytest

torch_distributed = pytest.importorskip("torch.distributed")

from rankscope.emulation.bootstrap import BootstrapError, Ring, RingAllGather  # noqa: E402
from rankscope.emulation.bootstrap.address import pack, unpack  # noqa: E402
from rankscope.emulation.bootstrap.errors import Reason  # noqa: E402
from rankscope.emulation.bootstrap.form_ring import form_ring, join, key_of  # noqa: E402
from rankscope.emulation.bootstrap.lookup import PollingLookup  # noqa: E402
from rankscope.emulation.bootstrap.loop import Loop, Task  # noqa: E402

HOST = "127.0.0.1"
TIMEOUT_S = 2.0


class Job:
    """Ranks of one communicator in one process, over a store in memory."""

    def __init__(self, world: int, timeout_s: float = TIMEOUT_S) -> None:
        self.world, self.timeout_s = world, timeout_s
        self.store = torch_distributed.HashStore()
        self.loop = Loop()
        self.lookup = PollingLookup(self.loop, self.store)

    def join(self, rank: int, world: int | None = None, host: str = HOST) -> Task[Ring]:
        deadline = monotonic() + self.timeout_s
        return self.loop.spawn(join(self.loop, self.lookup, rank, world or self.world, "t", host, deadline))

    def rings(self, order: list[int] | None = None) -> list[Ring]:
        tasks = {rank: self.join(rank) for rank in (order or range(self.world))}
        self.loop.run_all()
        return [tasks[rank].value() for rank in range(self.world)]

    def gather(
        self, rings: list[Ring], of: Callable[[int], bytes], **options: Any
    ) -> list[Task[list[bytes]]]:
        tasks = [self.loop.spawn(RingAllGather(ring, **options).gather_on(of(ring.rank))) for ring in rings]
        self.loop.run_all()
        return tasks


@pytest.mark.parametrize("world", [2, 3, 4, 7, 16, 33])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("sizes", ["first", "overlapped", "along"])
def test_everybody_has_everything(world: int, both: bool, sizes: str) -> None:
    job = Job(world, 20.0)
    rings = job.rings()
    expected = [b"%d" % rank * (rank % 5) for rank in range(world)]  # some of them empty
    for _ in range(2):  # one gather after the other over the same ring
        tasks = job.gather(rings, lambda rank: expected[rank], both=both, sizes=sizes)
        assert all(task.value() == expected for task in tasks)
    assert {ring.next.peer for ring in rings} == set(range(world))
    assert all(ring.next.peer == (ring.rank + 1) % world for ring in rings)


def test_chunks_larger_than_any_buffer_pass() -> None:
    job = Job(4, 20.0)
    rings = job.rings()
    expected = [bytes([rank]) * 3_000_000 for rank in range(4)]
    for both in (False, True):
        tasks = job.gather(rings, lambda rank: expected[rank], both=both)
        assert all(task.value() == expected for task in tasks)


def test_missing_rank_is_named_by_all_who_wait_for_it() -> None:
    job = Job(5)
    tasks = {rank: job.join(rank) for rank in range(5) if rank != 3}
    job.loop.run_all()
    for rank in (2, 4):
        with pytest.raises(BootstrapError) as caught:
            tasks[rank].value()
        assert (caught.value.culprit, caught.value.reason) == (3, Reason.MISSING)
    # The others have a ring, and hear of it in their first gather instead of waiting for ever.
    rings = [tasks[rank].value() for rank in (0, 1)]
    for task in job.gather(rings, lambda rank: b"x", timeout_s=TIMEOUT_S):
        with pytest.raises(BootstrapError) as caught:
            task.value()
        assert caught.value.culprit == 3


def test_late_rank_is_waited_for() -> None:
    job = Job(3, 20.0)
    tasks = [job.join(0), job.join(2)]

    async def late() -> Ring:
        await job.loop.pause(0.3)
        return await join(job.loop, job.lookup, 1, 3, "t", HOST, monotonic() + 20)

    tasks.insert(1, job.loop.spawn(late()))
    job.loop.run_all()
    assert [task.value().next.peer for task in tasks] == [1, 2, 0]


@pytest.mark.parametrize("both", [False, True])
def test_rank_that_dies_in_a_gather_is_named_everywhere(both: bool) -> None:
    job = Job(7)
    rings = job.rings()
    rings[4].close()
    rest = [ring for ring in rings if ring.rank != 4]
    for task in job.gather(rest, lambda rank: b"data", both=both, timeout_s=TIMEOUT_S):
        with pytest.raises(BootstrapError) as caught:
            task.value()
        assert (caught.value.culprit, caught.value.reason) == (4, Reason.GONE)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("sizes", ["first", "along"])
def test_silent_rank_is_named(both: bool, sizes: str) -> None:
    job = Job(5)
    rings = job.rings()
    rest = [ring for ring in rings if ring.rank != 2]  # 2 is connected, and says nothing
    tasks = job.gather(rest, lambda rank: b"data", both=both, sizes=sizes, timeout_s=0.5)
    culprits = {}
    for ring, task in zip(rest, tasks, strict=True):
        with pytest.raises(BootstrapError) as caught:
            task.value()
        culprits[ring.rank] = caught.value.culprit
    assert culprits[3] == 2  # who waits for it directly knows


def test_garbage_instead_of_an_address_is_a_lie() -> None:
    job = Job(3)
    job.store.set(key_of("t", 1), b"not an address")
    task = job.join(0)
    job.loop.run_all()
    with pytest.raises(BootstrapError) as caught:
        task.value()
    assert (caught.value.culprit, caught.value.reason) == (1, Reason.LIED)


def test_address_of_another_process_is_a_lie() -> None:
    job = Job(3)
    listener = socket.create_server((HOST, 0))
    listener.settimeout(5)
    job.store.set(key_of("t", 1), pack(HOST, listener.getsockname()[1]))

    async def stranger() -> None:
        while True:
            try:
                listener.setblocking(False)
                caller, _ = listener.accept()
            except BlockingIOError:
                await job.loop.pause(0.01)
                continue
            caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return

    task = job.join(0)
    job.loop.spawn(stranger())
    job.loop.run_all()
    listener.close()
    with pytest.raises(BootstrapError) as caught:
        task.value()
    assert (caught.value.culprit, caught.value.reason) == (1, Reason.LIED)


def test_nobody_at_the_published_address() -> None:
    job = Job(3, 0.7)
    with socket.socket() as bound:  # taken, so that nobody else listens there either
        bound.bind((HOST, 0))
        job.store.set(key_of("t", 1), pack(HOST, bound.getsockname()[1]))
        task = job.join(0)
        job.loop.run_all()
    with pytest.raises(BootstrapError) as caught:
        task.value()
    assert (caught.value.culprit, caught.value.reason) == (1, Reason.UNREACHABLE)


def test_rank_that_believes_in_another_world_is_named() -> None:
    job = Job(4, 1.0)
    tasks = [job.join(0), job.join(1, world=5), job.join(2), job.join(3)]
    job.loop.run_all()
    with pytest.raises(BootstrapError) as caught:
        tasks[2].value()
    assert caught.value.culprit == 1
    assert "5 ranks instead of 4" in str(caught.value)


def test_stranger_at_the_door_does_not_stop_the_ring() -> None:
    job = Job(2, 20.0)
    first = job.join(0)

    async def stranger() -> None:
        while not job.store.check([key_of("t", 0)]):
            await job.loop.pause(0.01)
        host, port, _ = unpack(job.store.get(key_of("t", 0)))
        with socket.create_connection((host, port)) as caller:
            caller.sendall(b"x" * 200)
        second.append(job.join(1))

    second: list[Task[Ring]] = []
    job.loop.spawn(stranger())
    job.loop.run_all()
    assert first.value().next.peer == 1
    assert second[0].value().next.peer == 0


def liar(job: Job, ring: Ring, frame: bytes) -> Coroutine[Any, Any, None]:
    async def send() -> None:
        ring.next.sock.send(frame)
        await job.loop.pause(0)

    return send()


@pytest.mark.parametrize(
    ("frame", "said"),
    [(struct.pack("<iI", 3, 4) + b"data", "chunk of rank 3 where that of rank 1"),
     (struct.pack("<iI", 1, 1 << 31), "above the")],
)  # fmt: skip
def test_impossible_chunks_are_lies(frame: bytes, said: str) -> None:
    job = Job(5)
    rings = job.rings()
    job.loop.spawn(liar(job, rings[1], frame))
    rest = [ring for ring in rings if ring.rank != 1]
    tasks = job.gather(rest, lambda rank: b"data", both=False, timeout_s=TIMEOUT_S)
    with pytest.raises(BootstrapError) as caught:
        tasks[1].value()
    assert (caught.value.culprit, caught.value.reason) == (1, Reason.LIED)
    assert said in str(caught.value)
    for task in tasks:
        with pytest.raises(BootstrapError) as caught:
            task.value()
        assert caught.value.culprit == 1


def test_arguments_that_make_no_sense() -> None:
    store = torch_distributed.HashStore()
    with pytest.raises(ValueError, match="two ranks"):
        form_ring(store, 0, 1)
    with pytest.raises(ValueError, match="not one of"):
        form_ring(store, 4, 4)


def test_address_is_28_bytes_both_ways() -> None:
    for host in ("10.1.2.3", "fe80::1"):
        assert len(pack(host, 29_500, 7)) == 28
        assert unpack(pack(host, 29_500, 7)) == (host, 29_500, 7)
    with pytest.raises(ValueError, match="port 0"):
        unpack(pack("10.0.0.1", 0))
