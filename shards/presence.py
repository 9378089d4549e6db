"""Workers that wait at this shard now.

A waiting worker changes nothing that must survive, so it is not in the log; the mirror shows it all the same. A worker
that claims jobs has a replicated record as well (`corvo.job.Worker`).
"""

from collections import OrderedDict
from collections.abc import Callable

from corvo.job import Worker

WORKERS_MAX = 10_000
TOLD_EVERY_NS = 5_000_000_000  # how often the mirror hears again of a worker that keeps waiting


class Presence:
    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._seen: OrderedDict[str, Worker] = OrderedDict()
        self._told: dict[str, int] = {}
        self._news: dict[str, Worker] = {}

    def see(self, worker_id: str, hostname: str, queues: list[str]) -> None:
        now = self._clock_ns()
        worker = self._seen.get(worker_id)
        if worker is None:
            worker = self._seen[worker_id] = Worker(worker_id, hostname, queues, now, now)
            if len(self._seen) > WORKERS_MAX:
                gone, _ = self._seen.popitem(last=False)
                self._told.pop(gone, None)
                self._news.pop(gone, None)
        else:
            worker.hostname, worker.queues, worker.last_seen_at = hostname, queues, now
        self._seen.move_to_end(worker_id)
        if now - self._told.get(worker_id, 0) >= TOLD_EVERY_NS:
            self._news[worker_id] = worker

    def has_news(self) -> bool:
        return bool(self._news)

    def take_news(self) -> list[Worker]:
        news, self._news = list(self._news.values()), {}
        now = self._clock_ns()
        self._told.update((worker.id, now) for worker in news)
        return news
