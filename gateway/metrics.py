"""Figures in Prometheus' format: the gateway's own, and what the shards say of themselves when asked.

Labels are route templates, shard numbers and nodes, never paths, job ids or queues of strangers: a label set that
clients can grow is a memory leak with a dashboard. Requests are counted in plain numbers, because a counter with a lock
costs more than what it counts; the library is left to do what it is for, the format.
"""

from collections.abc import Callable, Iterator
from time import perf_counter

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from corvo import __version__
from corvo.queries.cluster import HealthReport, Histogram, ShardStatus
from corvo.queries.queues import QueueView
from gateway.job_metrics import STATES, JobCollector, cumulative
from gateway.search.lag import Lag
from gateway.shards.replicas import members_of

_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]

_GAUGES: tuple[tuple[str, str, Callable[[ShardStatus], float]], ...] = (
    ("corvo_raft_term", "term of the shard's Raft group", lambda s: s.term),
    ("corvo_raft_commit_index", "last committed entry", lambda s: s.commit_index),
    ("corvo_raft_applied_index", "last applied entry", lambda s: s.applied_index),
    ("corvo_raft_log_index", "last entry of the log", lambda s: s.log_last_index),
    ("corvo_raft_log_entries", "entries kept in the log", lambda s: s.log_last_index - s.log_first_index + 1),
    ("corvo_raft_log_bytes", "bytes kept in the log", lambda s: s.log_bytes),
    ("corvo_raft_members", "nodes that hold a replica of the shard", lambda s: len(members_of(s))),
    ("corvo_cluster_is_leader", "1 where this replica leads", lambda s: int(s.role == "leader")),
    ("corvo_shard_calls_waiting", "operations admitted and not yet in the log", lambda s: s.calls_waiting),
    ("corvo_shard_fetches_parked", "fetches that wait for a job", lambda s: s.fetches_parked),
    ("corvo_shard_leases", "live leases", lambda s: s.leases),
    ("corvo_shard_memory_bytes", "resident memory of the shard process", lambda s: s.memory_bytes),
    (
        "corvo_mirror_lag_entries",
        "entries applied by the shard that the mirror has not confirmed",
        lambda s: max(s.applied_index - s.mirror_cursor, 0),
    ),
)
_COUNTERS: tuple[tuple[str, str, Callable[[ShardStatus], float]], ...] = (
    ("corvo_shard_operations", "operations applied", lambda s: s.operations_total),
    ("corvo_shard_entries", "entries applied", lambda s: s.entries_total),
    ("corvo_shard_overloads", "calls turned away", lambda s: s.overloads_total),
    ("corvo_raft_elections", "terms begun since the shard process started", lambda s: s.elections_total),
    (
        "corvo_raft_refused_messages",
        "messages and connections refused, because they were not from a replica of the group",
        lambda s: s.refused_total,
    ),
    ("corvo_shard_turns", "turns of the shard's loop", lambda s: s.turns_total),
)
_HISTOGRAMS: tuple[tuple[str, str, Callable[[ShardStatus], Histogram]], ...] = (
    ("corvo_raft_queue_time_seconds", "from arrival at the shard to the log", lambda s: s.queue_time_s),
    ("corvo_raft_apply_time_seconds", "applying one entry", lambda s: s.apply_time_s),
    ("corvo_raft_sync_time_seconds", "writing one batch to disk", lambda s: s.sync_time_s),
    ("corvo_shard_batch_size", "operations in one entry", lambda s: s.batch_size),
)


class Metrics:
    """Of one gateway. Where several share a port, a scrape reaches one of them: the label `gateway` says which, so that
    the counters of two are never taken for one that jumps."""

    def __init__(self, gateway: int = 0, queues_max: int = 0) -> None:
        self.gateway = gateway
        self._queues_max = queues_max  # that have their name as a label
        self.in_flight = 0
        self._served: dict[tuple[str, str, int], Histogram] = {}

    def observe(self, method: str, route: str, status: int, started: float) -> None:
        key = (method, route, status)
        histogram = self._served.get(key)
        if histogram is None:
            histogram = self._served[key] = Histogram(_BUCKETS, [0] * (len(_BUCKETS) + 1))
        histogram.observe(perf_counter() - started)

    def render(
        self,
        statuses: list[ShardStatus],
        queues: list[QueueView],
        lag: Lag | None,
        report: HealthReport,
        restarts: dict[str, int],
    ) -> bytes:
        registry = CollectorRegistry()
        registry.register(_Gateway(str(self.gateway), self.in_flight, self._served))
        registry.register(_Shards(statuses, queues, lag))
        registry.register(_Node(report, restarts))
        registry.register(JobCollector(statuses, queues, self._queues_max))
        return generate_latest(registry)


class _Gateway(Collector):
    def __init__(self, gateway: str, in_flight: int, served: dict[tuple[str, str, int], Histogram]) -> None:
        self._gateway = gateway
        self._in_flight = in_flight
        self._served = served

    def collect(self) -> Iterator[Metric]:
        labels = ["gateway", "method", "route"]
        requests = CounterMetricFamily("corvo_http_requests", "requests answered", labels=[*labels, "status"])
        durations: dict[tuple[str, str], Histogram] = {}
        for (method, route, status), histogram in self._served.items():
            requests.add_metric([self._gateway, method, route, str(status)], histogram.count)
            known = durations.setdefault((method, route), Histogram(_BUCKETS, [0] * (len(_BUCKETS) + 1)))
            known.counts = [one + other for one, other in zip(known.counts, histogram.counts, strict=True)]
            known.total += histogram.total
        yield requests
        duration = HistogramMetricFamily("corvo_http_request_duration_seconds", "time to answer", labels=labels)
        for (method, route), histogram in durations.items():
            duration.add_metric([self._gateway, method, route], cumulative(histogram), histogram.total)
        yield duration
        in_flight = GaugeMetricFamily("corvo_http_requests_in_flight", "requests being served", labels=["gateway"])
        in_flight.add_metric([self._gateway], self._in_flight)
        yield in_flight
        build = GaugeMetricFamily("corvo_build_info", "always 1", labels=["version"])
        build.add_metric([__version__], 1)
        yield build


class _Node(Collector):
    def __init__(self, report: HealthReport, restarts: dict[str, int]) -> None:
        self._report = report
        self._restarts = restarts

    def collect(self) -> Iterator[Metric]:
        text = "0 healthy, 1 degraded, 2 unavailable, as this node sees it"
        yield GaugeMetricFamily("corvo_health", text, self._report.number)
        restarts = CounterMetricFamily(
            "corvo_process_restarts", "restarts of a process since the node started", labels=["process"]
        )
        for process, count in self._restarts.items():
            restarts.add_metric([process], count)
        yield restarts


class _Shards(Collector):
    def __init__(self, statuses: list[ShardStatus], queues: list[QueueView], lag: Lag | None) -> None:
        self._statuses = statuses
        self._queues = queues
        self._lag = lag

    def collect(self) -> Iterator[Metric]:
        for name, text, value in _GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=["shard"])
            for status in self._statuses:
                gauge.add_metric([str(status.shard)], value(status))
            yield gauge
        for name, text, value in _COUNTERS:
            counter = CounterMetricFamily(name, text, labels=["shard"])
            for status in self._statuses:
                counter.add_metric([str(status.shard)], value(status))
            yield counter
        for name, text, histogram_of in _HISTOGRAMS:
            family = HistogramMetricFamily(name, text, labels=["shard"])
            for status in self._statuses:
                histogram = histogram_of(status)
                family.add_metric([str(status.shard)], cumulative(histogram), histogram.total)
            yield family
        yield from self._replica_families()
        if self._lag is not None:
            yield from _mirror_families(self._lag)
        yield from self._queue_families()

    def _replica_families(self) -> Iterator[Metric]:
        """Only the leader knows: on the other nodes the shard has no line here."""
        lag = GaugeMetricFamily(
            "corvo_raft_replica_lag_entries",
            "entries committed by the leader here that the replica has not confirmed",
            labels=["shard", "node"],
        )
        silence = GaugeMetricFamily(
            "corvo_raft_replica_silence_seconds",
            "time since the leader here heard from the replica",
            labels=["shard", "node"],
        )
        for status in self._statuses:
            for replica in status.replicas:
                if replica.node_id == status.node_id:
                    continue
                labels = [str(status.shard), replica.node_id]
                lag.add_metric(labels, max(status.commit_index - replica.match_index, 0))
                silence.add_metric(labels, replica.silent_ms / 1000)
        yield lag
        yield silence

    def _queue_families(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily("corvo_jobs", "jobs in each state", labels=["state"])
        for state in STATES:
            jobs.add_metric([state], sum(getattr(queue, state) for queue in self._queues))
        yield jobs
        yield GaugeMetricFamily("corvo_queues", "queues known", len(self._queues))


def _mirror_families(lag: Lag) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "corvo_read_db_lag_seconds", "how far the read database is behind the shards", lag.lag_ms / 1000
    )
    yield CounterMetricFamily("corvo_read_db_rows", "rows written by the mirror", lag.rows_total)
    yield GaugeMetricFamily(
        "corvo_read_db_rebuilt_timestamp_seconds", "when the read database was last built", lag.rebuilt_at
    )
    yield GaugeMetricFamily("corvo_read_db_rebuild_seconds", "how long that took", lag.rebuild_ms / 1000)
    generation = GaugeMetricFamily("corvo_read_db_info", "always 1", labels=["generation"])
    generation.add_metric([lag.generation], 1)
    yield generation
