"""What the emulation found, one line each, every number computed here from its own runs."""

from dataclasses import dataclass, replace
from typing import Final

from rankscope.emulation.compare import BASELINE
from rankscope.emulation.model import AllGather, Costs, Outcome, Ring, Scenario, Sizes, simulate
from rankscope.emulation.model.formation import ROOT_OUT_BYTES
from rankscope.emulation.model.gather import ring_plan

SMALL: Final = (16, 64, 384)


@dataclass(frozen=True)
class Finding:
    """A sentence and the numbers that it rests on."""

    name: str
    text: str
    values: dict[str, float]


def find(ranks: int, costs: Costs) -> list[Finding]:
    """All findings at `ranks` ranks (at least 1,024, or the large-scale ones mean nothing)."""
    base = simulate(BASELINE.scenario(ranks), costs)
    stored = simulate(replace(base.scenario, ring=Ring.TCPSTORE), costs)
    return [
        _root(base),
        _store_ring(base, stored),
        _both_ways(stored, costs),
        _small(costs),
        _several_roots(ranks, costs),
        _loops(stored, costs),
        _next(ranks, costs),
    ]


def phase_sums(outcome: Outcome) -> dict[str, float]:
    """Seconds by kind of phase: root, store, allgather, ring_building, transport_setup, other."""
    sums = dict.fromkeys(("root", "store", "allgather", "ring_building", "transport_setup", "other"), 0.0)
    for name, seconds in outcome.front_s():
        if name in ("stagger", "root"):
            kind = "root"
        elif name in ("root_ids", "create_store", "set_key", "get_key"):
            kind = "store"
        elif name.startswith("allgather"):
            kind = "allgather"
        else:
            kind = name if name in sums else "other"
        sums[kind] += seconds
    return sums


def _root(base: Outcome) -> Finding:
    n, worst = base.scenario.ranks, base.bottleneck
    sums = phase_sums(base)
    is_root = worst.phase == "root"
    text = (
        f"The root {'is' if is_root else 'is not'} the bottleneck of the baseline at {n:,} ranks: "
        f"{sums['root']:.1f} of {base.total_s:.1f} s ({sums['root'] / base.total_s:.0%}), growing as O(N)"
    )
    if not is_root:
        text += f"; {worst.phase} is, with {worst.seconds:.1f} s"
    return Finding("root", text + ".", {"root_s": sums["root"], "total_s": base.total_s})


def _store_ring(base: Outcome, stored: Outcome) -> Finding:
    before, after = phase_sums(base), phase_sums(stored)
    text = (
        f"A ring formed through the store takes {after['store']:.1f} s instead of {before['root']:.1f} s; "
        f"next is {_next_name(stored)} with {stored.bottleneck.seconds:.1f} of {stored.total_s:.1f} s."
    )
    return Finding(
        "store_ring", text,
        {"store_s": after["store"], "root_s": before["root"], "allgather_s": after["allgather"],
         "total_s": stored.total_s},
    )  # fmt: skip


def _next_name(outcome: Outcome) -> str:
    return "the AllGather" if outcome.bottleneck.phase == "allgather" else outcome.bottleneck.phase


def _both_ways(stored: Outcome, costs: Costs) -> Finding:
    one = stored.scenario
    n = one.ranks
    seconds = {
        (way, sizes): phase_sums(simulate(replace(one, allgather=way, sizes=sizes), costs))["allgather"]
        for way in (AllGather.RING, AllGather.BIDIRECTIONAL)
        for sizes in (Sizes.FIRST, Sizes.OVERLAPPED, Sizes.ALONG)
    }
    ring = seconds[AllGather.RING, Sizes.FIRST]
    first = ring / seconds[AllGather.BIDIRECTIONAL, Sizes.FIRST]
    overlapped = ring / seconds[AllGather.BIDIRECTIONAL, Sizes.OVERLAPPED]
    along = seconds[AllGather.RING, Sizes.ALONG] / seconds[AllGather.BIDIRECTIONAL, Sizes.ALONG]
    text = (
        f"Both directions halve the AllGather's rounds ({n - 1:,} to {n // 2:,}) but gain "
        f"{first:.2f}× with blocking "
        f"size exchanges ({ring_plan(n, AllGather.BIDIRECTIONAL, Sizes.FIRST).phases:,} instead of "
        f"{ring_plan(n, AllGather.RING, Sizes.FIRST).phases:,} dependent phases), {overlapped:.2f}× "
        "with overlapped "
        f"ones, {along:.2f}× with sizes sent along on both sides."
    )
    return Finding("both_ways", text, {"first": first, "overlapped": overlapped, "along": along})


def _small(costs: Costs) -> Finding:
    gains = {}
    for ranks in SMALL:
        one = Scenario(ranks, Ring.STAGGERED, AllGather.RING)
        both = replace(one, allgather=AllGather.BIDIRECTIONAL)
        gains[ranks] = simulate(one, costs).total_s / simulate(both, costs).total_s
    worst, best = min(gains.values()) - 1, max(gains.values()) - 1
    text = (
        f"At {SMALL[0]} to {SMALL[-1]} ranks both directions gain {worst:.1%} to {best:.1%} of the "
        "start-up: what does "
        "not grow with ranks is most of it."
    )
    return Finding("small", text, {str(ranks): gain for ranks, gain in gains.items()})


def _several_roots(ranks: int, costs: Costs) -> Finding:
    outcome = simulate(Scenario(ranks, Ring.MULTI_ROOT, AllGather.RING), costs)
    one = simulate(Scenario(ranks, Ring.ROOT, AllGather.RING), costs)
    roots, reads = outcome.scenario.root_count, outcome.counts.store_gets
    sums, single = phase_sums(outcome), phase_sums(one)
    text = (
        f"{roots:,} roots take the root's {single['root']:.1f} s to {sums['root']:.1f} s and move "
        "the load to the "
        f"store: {reads / 1e6:.1f} M key reads, {reads * ROOT_OUT_BYTES / 1e9:.1f} GB out, "
        f"{sums['store']:.1f} s."
    )
    return Finding(
        "several_roots", text,
        {"roots": roots, "key_reads": reads, "bytes_out": reads * ROOT_OUT_BYTES, "store_s": sums["store"],
         "root_s": sums["root"]},
    )  # fmt: skip


def _loops(stored: Outcome, costs: Costs) -> Finding:
    n = stored.scenario.ranks
    both = replace(stored.scenario, allgather=AllGather.BIDIRECTIONAL)
    quadratic = simulate(both, costs)
    linear = simulate(replace(both, loops=False), costs)
    sums = phase_sums(quadratic)
    loops = sums["ring_building"] + sums["transport_setup"]
    text = (
        f"Loops over all pairs of ranks cost {loops:.1f} s at {n:,} ranks "
        f"({sums['ring_building']:.1f} s ring building, "
        f"{sums['transport_setup']:.1f} s transport set-up), {loops / quadratic.total_s:.0%} of "
        "what is left, and "
        f"four times that at twice the ranks; without them {linear.total_s:.1f} s."
    )
    return Finding(
        "loops", text, {"loops_s": loops, "with_s": quadratic.total_s, "without_s": linear.total_s}
    )


def _next(ranks: int, costs: Costs) -> Finding:
    now = Scenario(ranks, Ring.TCPSTORE, AllGather.BIDIRECTIONAL, loops=False)
    ours = simulate(now, costs)
    steps = {
        "sizes sent along": replace(now, sizes=Sizes.ALONG),
        "recursive doubling": replace(now, allgather=AllGather.DOUBLING),
        "Bruck": replace(now, allgather=AllGather.BRUCK),
        "a tree": replace(now, allgather=AllGather.TREE),
    }
    totals = {name: simulate(scenario, costs) for name, scenario in steps.items()}
    order = sorted(totals, key=lambda name: totals[name].total_s)
    best = totals[order[0]]
    others = ", ".join(f"{name} {totals[name].total_s:.1f} s" for name in order[1:])
    text = (
        f"What would come next: {order[0]}, from {ours.total_s:.1f} to {best.total_s:.1f} s ({others}); then "
        f"{best.bottleneck.phase} holds it up ({best.bottleneck.share:.0%})."
    )
    return Finding("next", text, {name: outcome.total_s for name, outcome in totals.items()})
