"""Figures in few characters: numbers, ages, sparklines, rates. Pure."""

from collections.abc import Sequence

from corvo.model.timestamps import parse_rfc3339

_BARS = "▁▂▃▄▅▆▇█"


def per_second(then: float, now: float, span_s: float) -> float:
    """Counters only grow. One that is smaller than before belongs to a server that restarted: zero."""
    return max(0.0, now - then) / span_s if span_s > 0 else 0.0


def sparkline(values: Sequence[float]) -> str:
    highest = max(values, default=0.0)
    if highest <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[min(len(_BARS) - 1, int(value / highest * len(_BARS)))] for value in values)


def short(number: float) -> str:
    """At most five characters: 0, 0.4, 17, 999, 12.3k, 456k, 1.2M."""
    if number < 10 and number != int(number):
        return f"{number:.1f}"
    if number < 1000:
        return f"{number:.0f}"
    for unit in "kMG":
        number /= 1000
        if number < 99.95:
            return f"{number:.1f}{unit}"
        if number < 999.5:
            return f"{number:.0f}{unit}"
    return f"{number / 1000:.0f}T"


def seconds_since(moment: str | None, now_ns: int) -> float | None:
    """None for no moment, and for one that cannot be read. A clock behind the server's makes no negative age."""
    try:
        return max(0, now_ns - parse_rfc3339(moment)) / 1e9 if moment else None
    except ValueError:
        return None


def age(moment: str | None, now_ns: int) -> str:
    """In the largest whole unit."""
    seconds = seconds_since(moment, now_ns)
    if seconds is None:
        return "?" if moment else ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f}{unit}"
    return f"{seconds // 1:.0f}s"
