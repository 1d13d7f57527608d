"""Definitions that stand behind the numbers, and the small marks that every page uses."""

from rankscope.app.markup import Markup, span, tag
from rankscope.app.theme import STATUS

TIME_TO_START = (
    "From the launch (or the allocation, where a scheduler's record gives it) "
    "until the first optimizer step begins."
)
TIME_TO_RECOVER = (
    "From a failure until the run is back at full strength and committing steps: median over its failures."
)
FAILURES = "Incidents: one cause and all that it led to counts once, however many ranks reported an error."
EFFECTIVE = (
    "Share of all planned rank time that was spent inside steps that were committed and kept "
    "(ETT capacity). Lost capacity counts against it; the time share beside it leaves absent ranks out."
)
STEPS = "Optimizer steps that were committed and never rolled back. Lost steps had to be done again."


def status(name: str | None) -> Markup:
    """Glyph, word and colour of a run's status."""
    glyph, word, tone = STATUS.get(name or "", ("·", name or "unknown", "none"))
    return span(f"rs-status rs-{tone}", tag("i", glyph), word)


def tip(words: str, definition: str, side: str = "") -> Markup:
    """Words with their definition, shown on hover and on focus."""
    return span(f"rs-tip{' rs-tip-left' if side == 'left' else ''}", words, data_tip=definition, tabindex="0")
