"""A communicator's bootstrap as a library: a ring over any torch.distributed store, AllGathers over it.

    store = torch.distributed.TCPStore(host, port, world, is_master=rank == 0)
    with form_ring(store, rank, world, timeout_s=60) as ring:
        everybody = RingAllGather(ring).gather(my_bytes)

No root: a rank publishes its address in the store and reads its neighbour's. A rank that is missing, late,
dead or not what it says is named in a BootstrapError within the time-out, at every rank that waits for it.
"""

from rankscope.emulation.bootstrap.allgather import RingAllGather
from rankscope.emulation.bootstrap.errors import BootstrapError
from rankscope.emulation.bootstrap.form_ring import form_ring
from rankscope.emulation.bootstrap.ring import Ring

__all__ = ["BootstrapError", "Ring", "RingAllGather", "form_ring"]
