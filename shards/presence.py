"""Workers that wait at this shard now.

A waiting worker changes nothing that must survive, so it is not in the log; the mirror shows it all the same. A worker
that claims jobs has a replicated record as well (`corvo.job.Worker`). The mirror is told the whole list whenever there
is news, so that a lost or repeated answer leaves nothing wrong behind.
"""

from collections import OrderedDict
from collections.abc import Callable

from corvo.job import Worker
from corvo.limits import POLL_MS_MAX

WORKERS_MAX = 10_000
TOLD_EVERY_NS = 5_000_000_000  # how often the mirror hears again of a worker that keeps waiting
GONE_NS = (POLL_MS_MAX + 5_000) * 1_000_000  # the longest wait and a little: who was not seen for this long has left


class Presence:
    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._seen: OrderedDict[str, Worker] = OrderedDict()  # the one seen last at the end
        self._told: dict[str, int] = {}
        self._has_news = False

    def see(self, worker_id: str, hostname: str, queues: list[str]) -> None:
        now = self._clock_ns()
        worker = self._seen.get(worker_id)
        if worker is None:
            worker = self._seen[worker_id] = Worker(worker_id, hostname, queues, now, now)
            if len(self._seen) > WORKERS_MAX:
                self._forget_oldest()
        else:
            worker.hostname, worker.queues, worker.last_seen_at = hostname, queues, now
        self._seen.move_to_end(worker_id)
        if now - self._told.get(worker_id, 0) >= TOLD_EVERY_NS:
            self._has_news = True

    def has_news(self) -> bool:
        return self._has_news

    def take_news(self) -> list[Worker] | None:
        """Everybody who waits here, or None when nothing is new."""
        if not self._has_news:
            return None
        self._has_news = False
        now = self._clock_ns()
        while self._seen and now - next(iter(self._seen.values())).last_seen_at > GONE_NS:
            self._forget_oldest()
        self._told = dict.fromkeys(self._seen, now)
        return list(self._seen.values())

    def _forget_oldest(self) -> None:
        gone, _ = self._seen.popitem(last=False)
        self._told.pop(gone, None)
