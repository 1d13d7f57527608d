"""What others published about starting many ranks: each figure with its source, never without.

`level` says how a figure reached us: "publisher" the publisher's own text, "secondary" notes on it by others,
"derived" worked out from those here.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Point:
    """Seconds that `ranks` ranks (or clients) took in one published series."""

    series: str
    ranks: int
    seconds: float
    source: str
    level: str
    calibrates: bool = False  # used to fit; the others are held out and only compared with
    is_bound: bool = False  # "more than": a time-out


@dataclass(frozen=True)
class Figure:
    """A published or derived number that is not a point of a curve."""

    name: str
    value: float
    unit: str
    source: str
    level: str


BASELINE: Final = "NCCL, baseline"
NCCLX: Final = "NCCLX"
FT_HSDP: Final = "NCCL init (FT-HSDP)"
STORE: Final = "TCPStore, libuv server"
STORE_OLD: Final = "TCPStore, old server"
GLOO_BEFORE: Final = "gloo, before"
GLOO_AFTER: Final = "gloo, after"
MEGASCALE: Final = "MegaScale"

_NCCLX = "NCCLX paper, Fig. 21 (two notes on it agree)"
_HSDP = "FT-HSDP paper, arXiv 2602.00277 (notes on it)"
_GLOO = "github.com/pytorch/gloo pull request 408"
_BOOTSTRAP = "NVIDIA/nccl bootstrap.cc"
_PR_1791 = "NVIDIA/nccl pull request 1791"
_ROCM = "ROCm report"
_LIBUV = "PyTorch tutorial on the libuv backend of TCPStore"

POINTS: Final = (
    Point(BASELINE, 8_192, 14.5, _NCCLX, "secondary", calibrates=True),
    Point(BASELINE, 32_768, 55.71, _NCCLX, "secondary", calibrates=True),
    Point(BASELINE, 98_304, 265.0, _NCCLX, "secondary"),
    Point(NCCLX, 8_192, 3.97, _NCCLX, "secondary", calibrates=True),
    Point(NCCLX, 32_768, 11.89, _NCCLX, "secondary", calibrates=True),
    Point(NCCLX, 98_304, 24.0, _NCCLX + "; '11x' in its abstract", "secondary"),
    Point(FT_HSDP, 16_384, 17.0, _HSDP, "secondary", calibrates=True),
    Point(FT_HSDP, 22_528, 30.0, _HSDP, "secondary"),
    Point(FT_HSDP, 65_536, 100.0, _HSDP, "secondary"),
    Point(FT_HSDP, 98_304, 200.0, _HSDP, "secondary", calibrates=True),
    Point(
        STORE, 4_096, 1.98, "github.com/pytorch/pytorch issue 129261, one host", "publisher", calibrates=True
    ),
    Point(STORE, 98_304, 100.0, _LIBUV, "publisher"),
    Point(STORE_OLD, 98_304, 1_800.0, _LIBUV + ": time-out after 30 min", "publisher", is_bound=True),
    Point(GLOO_BEFORE, 2_048, 82.0, _GLOO, "publisher", calibrates=True),
    Point(GLOO_BEFORE, 4_096, 393.0, _GLOO, "publisher", calibrates=True),
    Point(GLOO_BEFORE, 8_192, 3_300.0, _GLOO, "publisher"),
    Point(GLOO_AFTER, 2_048, 18.0, _GLOO, "publisher", calibrates=True),
    Point(GLOO_AFTER, 4_096, 25.0, _GLOO, "publisher", calibrates=True),
    Point(GLOO_AFTER, 8_192, 85.0, _GLOO, "publisher"),
    Point(MEGASCALE + ", before", 2_048, 1_047.0, "MegaScale, NSDI'24 (notes on it)", "secondary"),
    Point(
        MEGASCALE + ", without the store's locks",
        2_048,
        361.0,
        "MegaScale, NSDI'24 (notes on it)",
        "secondary",
    ),
    Point(MEGASCALE + ", after", 2_048, 5.0, "MegaScale, NSDI'24 (notes on it)", "secondary", is_bound=True),
)

RING_LOOP: Final = Figure(
    "ring building, a pair of ranks",
    26.0 / 98_304**2,
    "s",
    "26 s at 98,304 ranks, NVIDIA/nccl pull request 1789",
    "derived",
)
TRANSPORT_LOOP: Final = Figure(
    "transport set-up, a pair of ranks",
    11.0 / 49_152**2,
    "s",
    "11 s at 49,152 ranks, NVIDIA/nccl pull request 1789",
    "derived",
)
STAGGER: Final = Figure(
    "delay of a rank's first connection before NCCL 2.23",
    1e-3,
    "s a rank",
    "NVIDIA/nccl bootstrap.cc",
    "publisher",
)

FIGURES: Final = (
    RING_LOOP,
    TRANSPORT_LOOP,
    STAGGER,
    Figure("rate of first connections since NCCL 2.23", 7_000, "1/s", _BOOTSTRAP, "publisher"),
    Figure("two-way AllGather at large scale", 2, "times faster", _PR_1791, "publisher"),
    Figure("two-way AllGather, 16 to 384 ranks, at least", 1.05, "times faster", _ROCM, "secondary"),
    Figure("two-way AllGather, 16 to 384 ranks, at most", 1.15, "times faster", _ROCM, "secondary"),
    Figure("store operations of torchelastic, 4,000 hosts, quadratic", 373, "s",
           "github.com/pytorch/pytorch pull request 124982", "publisher"),
    Figure("the same, linear", 10, "s", "github.com/pytorch/pytorch pull request 124982", "publisher"),
    Figure("new_group, 128 ranks", 2.87, "s", "github.com/pytorch/pytorch pull request 99931", "publisher"),
    Figure("the same with local synchronisation", 0.04, "s",
           "github.com/pytorch/pytorch pull request 99931", "publisher"),
    Figure("store barrier's time-out, at least", 10, "s plus 1 s for each 1,000 ranks",
           "github.com/pytorch/pytorch pull request 109218", "publisher"),
    Figure("one communicator whose kernels took 52.5 s", 55, "s", "NVIDIA/nccl issue 1646", "publisher"),
    Figure("Meta's CPU emulation: 96K ranks on CPU servers", 3_072, "hosts, 32 ranks each",
           "talk on CPU emulation of NCCL start-up (notes on it)", "secondary"),
)  # fmt: skip


def series(name: str) -> tuple[Point, ...]:
    """The points of one series, by ranks."""
    return tuple(sorted((p for p in POINTS if p.series == name), key=lambda p: p.ranks))
