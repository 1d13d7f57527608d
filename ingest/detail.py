"""How much of its collectives a rank keeps: all in full, or roll-ups and a ring of the last ones.

RANKSCOPE_DETAIL is `all` (each in full), `sampled` (in full on rank 0 and every 1024th, and on all for
their first steps), or `ring` (in full only for the first steps); without it `all` up to 64 ranks and
`sampled` above.
"""

import os
from typing import Final

FIRST_STEPS: Final = 20
SAMPLED_EVERY: Final = 1024
ALL_UP_TO: Final = 64  # ranks


class Detail:
    """From which step on a rank's collectives go to its ring."""

    def __init__(self, rank: int, world_size: int | None) -> None:
        asked = os.environ.get("RANKSCOPE_DETAIL", "")
        if asked not in ("all", "sampled", "ring"):
            asked = "all" if (world_size or 1) <= ALL_UP_TO else "sampled"
        is_sampled = asked == "sampled" and rank >= 0 and rank % SAMPLED_EVERY == 0
        self.needs_ring = asked != "all" and not is_sampled

    def from_step(self, number: int) -> int:
        """The first step that is not kept in full, when `number` is the first step."""
        return number + FIRST_STEPS
