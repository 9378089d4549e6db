"""Whether the cores are free: told by how much of one this process gets while it works."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

CROWDED_BELOW = 0.8  # of a core
_NEWEST = 0.2  # weight of the newest measurement


class Contention:
    """Work that waits for a disk or a lock looks like work that waits for a core: measure none of that."""

    def __init__(self) -> None:
        self._share = 1.0  # of a core that we got, lately

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
