"""Workers that wait at this shard now.

A waiting worker changes nothing that must survive, so it is not in the log; the mirror shows it all the same. A worker
that claims jobs also has a replicated record (`corvo.model.job.Worker`). The mirror gets the whole list whenever there
is news, so that a lost or repeated answer leaves nothing wrong behind.

The leader also remembers when each queue was last asked for: a job whose queue is not fetched from does not run.
"""

from collections import OrderedDict
from collections.abc import Callable

from corvo.model.job import Worker
from corvo.model.limits import POLL_MS_MAX
from corvo.queries.why import Demand

WORKERS_MAX = 10_000
QUEUES_ASKED_MAX = 20_000
TOLD_EVERY_NS = 5_000_000_000  # how often the mirror hears again of a worker that keeps waiting
GONE_NS = (
    POLL_MS_MAX + 5_000
) * 1_000_000  # the longest wait and a little: a worker that was not seen for this long has left


class Presence:
    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._seen: OrderedDict[str, Worker] = OrderedDict()  # the one seen last at the end
        self._told: dict[str, int] = {}
        self._has_news = False
        self._asked: dict[str, int] = {}  # queue → monotonic moment of the last fetch from it
        self._asked_since_ns = 0  # before this, a queue that is not there may have been asked for

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

    def ask(self, queues: list[str], now_ns: int) -> None:
        """A worker wants jobs of these queues. Called by every fetch: one store for each."""
        asked = self._asked
        for queue in queues:
            asked[queue] = now_ns
        if len(asked) > QUEUES_ASKED_MAX:
            by_age = sorted(asked.items(), key=lambda item: item[1])
            half = len(by_age) // 2
            self._asked_since_ns = by_age[half - 1][1]
            self._asked = dict(by_age[half:])

    def forget_asked(self, now_ns: int) -> None:
        """Another leader may have been asked meanwhile."""
        self._asked.clear()
        self._asked_since_ns = now_ns

    def demand(self, queue: str, now_ns: int, is_waited_for: bool) -> Demand:
        now = self._clock_ns()
        asked_ns = self._asked.get(queue)
        return Demand(
            now,
            is_waited_for,
            0 if asked_ns is None else now - (now_ns - asked_ns),
            now - (now_ns - self._asked_since_ns),
        )

    def has_news(self) -> bool:
        return self._has_news

    def take_news(self) -> list[Worker] | None:
        """Every worker that waits here, or None when nothing is new."""
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
