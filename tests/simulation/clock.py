"""Simulated time: one order of events for all, and for each host a clock that runs a little wrong."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

MS = 1_000_000
T = 1000 * MS  # the minimum election timeout of every simulated group
EPOCH_NS = 1_767_225_600_000 * MS  # wall clocks begin here
MILLION = 1_000_000


class Events:
    """What will happen, in the order of time; what is due at one moment happens in the order of asking."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.count = 0  # events that have happened: also the clock of histories, because no two share a number
        self._asked = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def at(self, when_ns: int, act: Callable[..., None], *args: Any) -> None:
        self._asked += 1
        heappush(self._heap, (max(when_ns, self.now_ns), self._asked, act, args))

    def after(self, span_ns: int, act: Callable[..., None], *args: Any) -> None:
        self._asked += 1
        heappush(self._heap, (self.now_ns + span_ns, self._asked, act, args))

    def run_until(self, until_ns: int) -> None:
        while self._heap and self._heap[0][0] <= until_ns:
            self.now_ns, _, act, args = heappop(self._heap)
            self.count += 1
            act(*args)
        self.now_ns = until_ns


class HostClock:
    """A monotonic clock that drifts, and a wall clock that may jump."""

    def __init__(self, events: Events, rate_ppm: int, wall_skew_ns: int) -> None:
        self._events = events
        self._rate_ppm = MILLION + rate_ppm
        self._offset_ns = T  # no clock begins at zero
        self.wall_skew_ns = wall_skew_ns

    def local_ns(self) -> int:
        return self._offset_ns + self._events.now_ns * self._rate_ppm // MILLION

    def true_ns(self, local_ns: int) -> int:
        """The first true moment at which this clock shows `local_ns`."""
        return -((self._offset_ns - local_ns) * MILLION // self._rate_ppm)

    def wall_ns(self) -> int:
        return EPOCH_NS + self._events.now_ns + self.wall_skew_ns
