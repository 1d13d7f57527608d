"""Which ranks a timeline shows, where it cannot show all."""

from collections.abc import Sequence

LANES = 32


def pick(ranks: int, wanted: Sequence[int], roots: Sequence[int]) -> list[int]:
    """At most LANES ranks, in order: those asked for, else all, else root causes and some evenly spread.

    Args:
        ranks: of the run.
        wanted: by the address of the page.
        roots: root causes of incidents, worst first.
    """
    asked = sorted({rank for rank in wanted if 0 <= rank < ranks})[:LANES]
    if asked:
        return asked
    if ranks <= LANES:
        return list(range(ranks))
    chosen = set(list(dict.fromkeys(roots))[: LANES // 2])
    spread = LANES - len(chosen)
    chosen.update(place * ranks // spread for place in range(spread))
    return sorted(chosen)


def parse(text: str) -> list[int]:
    """Ranks from words like '0-3,12': ranges and single ones; what cannot be read is left out."""
    found: list[int] = []
    for word in text.split(","):
        first, _, last = word.strip().partition("-")
        if first.isdigit() and (last or first).isdigit():
            found += range(int(first), min(int(last or first), int(first) + LANES) + 1)
    return found
