"""What a worker has counted, for `/metrics` and its last words."""

import time
from collections import Counter

BUCKETS_S = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0, 1800.0)


class WorkerTally:
    def __init__(self) -> None:
        self.started_at = time.time()
        self.outcomes: Counter[str] = Counter()  # as the server answered: completed, retrying, dead, scheduled, lost …
        self.ended: Counter[str] = Counter()  # handlers, by queue
        self.run_s: dict[str, float] = {}  # by queue
        self.buckets: dict[str, list[int]] = {}
        self.connections = 0
        self.handed_back = 0
        self.stuck = 0  # handlers that ignore their time limit, now
        self.blocked_s = 0.0  # how long the loop has not answered, now

    def ran(self, queue: str, seconds: float) -> None:
        self.ended[queue] += 1
        self.run_s[queue] = self.run_s.get(queue, 0.0) + seconds
        buckets = self.buckets.get(queue)
        if buckets is None:
            buckets = self.buckets[queue] = [0] * (len(BUCKETS_S) + 1)
        for place, limit in enumerate(BUCKETS_S):
            if seconds <= limit:
                buckets[place] += 1
                return
        buckets[-1] += 1
