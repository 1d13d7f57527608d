"""Numbers as people read them: three significant figures, a unit, and a dash for what is not known."""

import datetime

UNKNOWN = "–"
_THIN = "\u2009"


def seconds(value: float | None) -> str:
    """A duration in seconds: '850 ms', '12.3 s', '4 min 05 s', '3 h 12 min', '2 d 4 h'."""
    if value is None:
        return UNKNOWN
    if value < 0:
        return "−" + seconds(-value)
    if value == 0:
        return f"0{_THIN}s"
    if value < 1e-6:
        return f"{value * 1e9:.0f}{_THIN}ns"
    if value < 0.001:
        return f"{value * 1e6:.0f}{_THIN}µs"
    if value < 0.9995:
        return f"{value * 1e3:.3g}{_THIN}ms"
    if value < 99.95:
        return f"{value:.3g}{_THIN}s"
    if value < 3599.5:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes}{_THIN}min" + (f" {rest:02d}{_THIN}s" if rest else "")
    if value < 86370:
        hours, rest = divmod(round(value / 60), 60)
        return f"{hours}{_THIN}h" + (f" {rest:02d}{_THIN}min" if rest else "")
    days, rest = divmod(round(value / 3600), 24)
    return f"{days:,}{_THIN}d" + (f" {rest}{_THIN}h" if rest else "")


def nanoseconds(value: int | None) -> str:
    """A duration in nanoseconds, written as `seconds` does."""
    return UNKNOWN if value is None else seconds(value / 1e9)


def percent(ratio: float | None, digits: int = 1) -> str:
    """A ratio from 0 to 1 as '80.1 %'. A share that is small but there never reads as 0."""
    if ratio is None:
        return UNKNOWN
    smallest = 0.5 * 10 ** -(digits + 2)
    if 0 < ratio < smallest:
        return f"<{_THIN}{10**-digits:.{digits}f}{_THIN}%"
    return f"{ratio * 100:.{digits}f}{_THIN}%"


def count(value: int | float | None) -> str:
    """An amount with thousands apart: '102,400'."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def plural(value: int | None, one: str, many: str | None = None) -> str:
    """'1 rank', '4 ranks', '– ranks'."""
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def moment(ns: int | None, *, with_date: bool = True) -> str:
    """A time in nanoseconds since the epoch, in UTC."""
    if ns is None:
        return UNKNOWN
    when = datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC)
    return when.strftime("%Y-%m-%d %H:%M:%S" if with_date else "%H:%M:%S")


def day(ns: int | None) -> str:
    """A time in nanoseconds since the epoch, in UTC, to the minute and without the year: 'Dec 01 02:15'."""
    if ns is None:
        return UNKNOWN
    return datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC).strftime("%b %d %H:%M")


def rank_list(ranks: list[int] | None, limit: int = 6) -> str:
    """Ranks as ranges, cut after `limit` of them: '0–3, 8, 12–15 … (40 in all)'."""
    if not ranks:
        return UNKNOWN
    ranges: list[list[int]] = []
    for rank in sorted(ranks):
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    words = [f"{a}" if a == b else f"{a}–{b}" for a, b in ranges[:limit]]
    more = f" … ({len(ranks):,} in all)" if len(ranges) > limit else ""
    return ", ".join(words) + more
