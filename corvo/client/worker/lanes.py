"""Credits: how many jobs a worker asks for. Pure.

A lane is a group of queues with slots of their own: one for each task with a `concurrency`, one for all others. A lane
asks for as many jobs as it has free slots, and for some more when its jobs are short: as many as its slots finish in
`AHEAD_S`. So no-op jobs arrive by the hundred, and a job of a second never waits behind another one while a different
worker is idle.
"""

from .frames import JOBS_PER_FETCH

AHEAD_S = 0.05
AHEAD_MAX = 1_000  # jobs that are claimed before a slot is free
SMOOTHING = 0.05  # of the average run
FETCHES_MAX = 2  # of one lane under way
SECOND_FETCH_MIN = 64  # a second fetch beside the first must be worth a frame


class Lane:
    def __init__(self, queues: list[str], slots: int, prefetch: int | None = None) -> None:
        self.queues = queues
        self.slots = slots
        self.occupied = 0  # jobs that were claimed and whose handlers have not ended
        self.asked = 0  # jobs of open fetches
        self.fetches = 0
        self.is_open = True
        self._prefetch = prefetch
        self._average_s: float | None = None
        self._was_full = False

    @property
    def ahead(self) -> int:
        if self._prefetch is not None:
            return self._prefetch
        if self._average_s is None or self._average_s >= AHEAD_S:
            return 0
        return min(AHEAD_MAX, int(self.slots * AHEAD_S / max(self._average_s, 1e-6)))

    def wanted(self) -> int:
        """Jobs to ask for now; 0: none."""
        free = self.slots + self.ahead - self.occupied - self.asked
        if not self.is_open or free <= 0 or self.fetches >= FETCHES_MAX:
            return 0
        if self.fetches and (not self._was_full or free < SECOND_FETCH_MIN):
            return 0
        return min(free, JOBS_PER_FETCH)

    def ask(self, count: int) -> None:
        self.asked += count
        self.fetches += 1

    def answered(self, count: int, jobs: int) -> None:
        self.asked -= count
        self.fetches -= 1
        self.occupied += jobs
        self._was_full = jobs == count

    def returned(self) -> None:
        """A job that never began was handed back."""
        self.occupied -= 1

    def ended(self, seconds: float) -> None:
        """A handler ended after so long."""
        self.occupied -= 1
        average = self._average_s
        self._average_s = seconds if average is None else average + SMOOTHING * (seconds - average)
