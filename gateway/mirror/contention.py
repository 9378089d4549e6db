"""Estimates whether cores are free from the share of a core that this process gets while it works."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

CROWDED_BELOW = 0.8  # share of a core
_NEWEST = 0.2  # weight of the newest measurement


class Contention:
    """Measure only work without I/O and locks: waiting for them looks like waiting for a core."""

    def __init__(self) -> None:
        self._share = 1.0  # of a core, as a moving average

    @property
    def is_crowded(self) -> bool:
        return self._share < CROWDED_BELOW

    @contextmanager
    def measured(self) -> Iterator[None]:
        began, began_cpu = time.monotonic(), time.thread_time()
        yield
        self.learn(time.thread_time() - began_cpu, time.monotonic() - began)

    def learn(self, got_s: float, took_s: float) -> None:
        if took_s > 0:
            self._share += _NEWEST * (min(got_s / took_s, 1.0) - self._share)
