"""How far the clocks of a run's hosts are apart: a collective ends everywhere at about the same moment.

    estimate(con, "llama")      # fills host_clock for the run

True time is raw time minus `offset_ns`, on the clock of the reference host, that of the lowest rank. The
interval is what cause and effect allow: nobody leaves a synchronising collective before the last has come.
"""

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

_EDGES = Path(__file__).with_name("clock_edges.sql")
_DRIFT_MEETINGS = 20
_DRIFT_SPAN_NS = 60 * 1_000_000_000  # a drift seen over less time is noise


@dataclass(frozen=True)
class Offset:
    """A clock minus another one, ns, with the interval that it lies in."""

    value: int
    low: int
    high: int
    drift_ppm: float | None

    def __neg__(self) -> "Offset":
        return Offset(-self.value, -self.high, -self.low, None if self.drift_ppm is None else -self.drift_ppm)

    def __add__(self, other: "Offset") -> "Offset":
        known = self.drift_ppm is not None and other.drift_ppm is not None
        drift = (self.drift_ppm or 0.0) + (other.drift_ppm or 0.0) if known else None
        return Offset(self.value + other.value, self.low + other.low, self.high + other.high, drift)


SAME = Offset(0, 0, 0, 0.0)


def estimate(con: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Estimate the offsets of a run's hosts anew. A run on one host has none."""
    run = {"run_id": run_id}
    hosts = con.execute(
        "SELECT host, min(rank) FROM rank WHERE run_id = $run_id AND rank >= 0 AND host IS NOT NULL "
        "GROUP BY host ORDER BY min(rank), host",
        run,
    ).fetchall()
    if len(hosts) < 2:
        return
    edges = con.execute(_EDGES.read_text(), run).fetchall()
    offsets = spread(hosts[0][0], ((lead, host, _offset(*rest)) for lead, host, *rest in edges))
    con.begin()
    try:
        con.execute("DELETE FROM host_clock WHERE run_id = $run_id", run)
        if len(offsets) > 1:
            now = time.time_ns()
            con.executemany(
                "INSERT INTO host_clock VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (run_id, host, now, found.value, found.low, found.high, found.drift_ppm, method)
                    for host, found in sorted(offsets.items())
                    for method in ("reference" if host == hosts[0][0] else "collective_ends",)
                ],
            )
        con.commit()
    except BaseException:
        con.rollback()
        raise


def spread(reference: str, edges: Iterable[tuple[str, str, Offset]]) -> dict[str, Offset]:
    """Offsets against `reference` of all hosts that lead to it, by the fewest steps.

    Args:
        edges: (host, other host, clock of the other minus clock of the host).
    """
    known: dict[str, list[tuple[str, Offset]]] = defaultdict(list)
    for lead, host, offset in edges:
        known[lead].append((host, offset))
        known[host].append((lead, -offset))
    found = {reference: SAME}
    waiting = [reference]
    for host in waiting:
        for other, offset in known[host]:
            if other not in found:
                found[other] = found[host] + offset
                waiting.append(other)
    return found


def _offset(
    meetings: int, difference: int, low: int | None, high: int | None, spread_low: int, spread_high: int,
    slope: float | None, span: int,
) -> Offset:  # fmt: skip
    drifts = slope is not None and meetings >= _DRIFT_MEETINGS and span >= _DRIFT_SPAN_NS
    if low is None or high is None or low > high:
        # No synchronising collective, or clocks that moved meanwhile: how far the differences scatter.
        low, high = spread_low, spread_high
    value = min(max(difference, low), high)
    return Offset(value, low, high, slope * 1e6 if drifts and slope is not None else None)
