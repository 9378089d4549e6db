"""What was counted. Pure."""

from array import array
from collections import Counter
from collections.abc import Iterable

import msgspec

OVERLOADS = frozenset({"OVERLOADED"})


class Percentiles(msgspec.Struct, frozen=True):
    """In milliseconds."""

    count: int
    p50: float
    p90: float
    p99: float
    max: float


class Tally:
    """Counts while `is_counting`: what comes home after the end of the measurement is no part of it, unless it is an
    error."""

    def __init__(self) -> None:
        self.is_counting = True
        self.enqueued = 0
        self.claimed = 0
        self.completed = 0
        self.overloads = 0
        self.errors: Counter[str] = Counter()
        self.turns_s = array("d")
        self.latencies_s = array("d")

    def count(self, enqueued: int, claimed: int, completed: int) -> None:
        if self.is_counting:
            self.enqueued += enqueued
            self.claimed += claimed
            self.completed += completed

    def refuse(self, code: str) -> None:
        if code in OVERLOADS:
            self.overloads += 1
        else:
            self.errors[code] += 1


def percentiles(seconds: Iterable[float]) -> Percentiles | None:
    """None when nothing was measured."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    count = len(ordered)
    p50, p90, p99 = (round(ordered[min(int(count * share), count - 1)] * 1000, 3) for share in (0.5, 0.9, 0.99))
    return Percentiles(count, p50, p90, p99, round(ordered[-1] * 1000, 3))
