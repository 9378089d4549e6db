"""Figures of jobs and queues for Prometheus.

Counters and times come from the shards' leaders. Names of queues are labels only where a setting allows it, and then of
so many queues: names come from clients, and must not grow the memory of whoever collects figures.
"""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from corvo.queries.cluster import Histogram, JobFigures, ShardStatus
from corvo.queries.queues import QueueView

OTHER_QUEUES = "_other"  # no queue's name begins like this
STATES = ("pending", "active", "held", "completed", "dead", "scheduled", "retrying", "cancelled")

_COUNTERS: tuple[tuple[str, str, Callable[[JobFigures], int]], ...] = (
    ("corvo_jobs_enqueued", "jobs enqueued", lambda jobs: jobs.enqueued),
    ("corvo_jobs_completed", "jobs completed", lambda jobs: jobs.completed),
    ("corvo_jobs_failed", "attempts that failed", lambda jobs: jobs.failed),
    ("corvo_jobs_dead", "jobs that ended as dead", lambda jobs: jobs.dead),
)
_HISTOGRAMS: tuple[tuple[str, str, Callable[[JobFigures], Histogram]], ...] = (
    ("corvo_job_wait_seconds", "from when a job could be claimed to its first claim", lambda jobs: jobs.wait_s),
    ("corvo_job_run_seconds", "from claim to completion", lambda jobs: jobs.run_s),
)
_QUEUE_COUNTERS: tuple[tuple[str, str, Callable[[QueueView], int]], ...] = (
    ("corvo_queue_enqueued", "jobs enqueued, ever", lambda queue: queue.enqueued),
    ("corvo_queue_completed", "jobs completed, ever", lambda queue: queue.completed_total),
    ("corvo_queue_failed", "attempts that failed, ever", lambda queue: queue.failed),
    ("corvo_queue_dead", "jobs that ended as dead, ever", lambda queue: queue.dead_total),
)


class JobCollector(Collector):
    def __init__(self, statuses: Sequence[ShardStatus], queues: Sequence[QueueView], queues_max: int) -> None:
        self._statuses = statuses
        self._queues = queues
        self._queues_max = queues_max

    def collect(self) -> Iterator[Metric]:
        yield from self._shard_families()
        ages = [queue.oldest_pending_age_ms for queue in self._queues if queue.oldest_pending_age_ms is not None]
        yield GaugeMetricFamily(
            "corvo_oldest_pending_seconds",
            "age of the oldest pending job; 0: none is pending",
            max(ages, default=0) / 1000,
        )
        if self._queues_max:
            yield from _queue_families(grouped(self._queues, self._queues_max))

    def _shard_families(self) -> Iterator[Metric]:
        for name, text, value in _COUNTERS:
            counter = CounterMetricFamily(name, f"{text}, by this replica as leader", labels=["shard"])
            for status in self._statuses:
                counter.add_metric([str(status.shard)], value(status.jobs))
            yield counter
        for name, text, histogram_of in _HISTOGRAMS:
            family = HistogramMetricFamily(name, text, labels=["shard"])
            for status in self._statuses:
                histogram = histogram_of(status.jobs)
                family.add_metric([str(status.shard)], cumulative(histogram), histogram.total)
            yield family


def grouped(queues: Sequence[QueueView], queues_max: int) -> dict[str, list[QueueView]]:
    """The busiest queues by name, as measured over their lives, and all others together."""
    busiest = sorted(queues, key=lambda queue: (-queue.enqueued, queue.name))
    groups = {queue.name: [queue] for queue in busiest[:queues_max]}
    if others := busiest[queues_max:]:
        groups[OTHER_QUEUES] = others
    return groups


def _queue_families(groups: dict[str, list[QueueView]]) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("corvo_queue_jobs", "jobs of a queue in each state", labels=["queue", "state"])
    for name, queues in groups.items():
        for state in STATES:
            jobs.add_metric([name, state], sum(getattr(queue, state) for queue in queues))
    yield jobs
    for metric, text, value in _QUEUE_COUNTERS:
        counter = CounterMetricFamily(metric, text, labels=["queue"])
        for name, queues in groups.items():
            counter.add_metric([name], sum(map(value, queues)))
        yield counter
    oldest = GaugeMetricFamily(
        "corvo_queue_oldest_pending_seconds", "age of a queue's oldest pending job", labels=["queue"]
    )
    for name, queues in groups.items():
        oldest.add_metric([name], max(queue.oldest_pending_age_ms or 0 for queue in queues) / 1000)
    yield oldest


def cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    buckets: list[tuple[str, float]] = []
    count = 0
    for bound, here in zip([*(str(bound) for bound in histogram.bounds), "+Inf"], histogram.counts, strict=True):
        count += here
        buckets.append((bound, count))
    return buckets
