"""How the node is doing: what each shard says about itself, and the routes that show it."""

from bisect import bisect_left
from typing import Any, ClassVar

import msgspec

from corvo.ops.operation import Endpoint, Query


class Histogram(msgspec.Struct, array_like=True):
    """Counts per bucket (not cumulative), the last one without an upper bound."""

    bounds: list[float]
    counts: list[int]
    total: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def observe(self, value: float) -> None:
        self.total += value
        self.counts[bisect_left(self.bounds, value)] += 1


class ShardStatus(msgspec.Struct, array_like=True):
    shard: int
    node_id: str
    role: str
    leader: str
    term: int
    commit_index: int
    applied_index: int
    log_first_index: int
    log_last_index: int
    state_hash: str
    fsync: bool
    uptime_s: float
    operations_total: int
    entries_total: int
    overloads_total: int
    calls_waiting: int  # admitted, not yet answered
    fetches_parked: int
    pulls_parked: int
    leases: int
    queues: int
    mirror_cursor: int
    batch_size: Histogram
    queue_time_s: Histogram
    apply_time_s: Histogram
    sync_time_s: Histogram
    memory_bytes: int = 0
    turns_total: int = 0


class GetStatus(Query, tag=1020):
    result: ClassVar[Any] = ShardStatus


class ShardView(msgspec.Struct):
    shard: int
    node_id: str
    state: str
    leader_id: str
    term: int
    commit_index: int
    applied_index: int
    log_entries: int
    operations_total: int
    entries_total: int
    batch_size_avg: float
    sync_ms_avg: float
    waiting: int
    fetches_parked: int
    leases: int
    mirror_lag_entries: int
    memory_bytes: int
    error: str | None = None


class MirrorView(msgspec.Struct):
    lag_ms: float
    generation: str
    rows_total: int


class ClusterStatus(msgspec.Struct):
    status: str
    mode: str
    node_id: str
    version: str
    shards: int
    fsync: bool
    groups: list[ShardView]
    mirror: MirrorView | None


class ServerInfo(msgspec.Struct):
    server_version: str
    api_version: str


ENDPOINTS = (
    Endpoint(
        name="cluster_status",
        method="GET",
        path="/cluster/status",
        summary="Health and figures of every shard",
        answers={200: ClusterStatus},
    ),
    Endpoint(
        name="info",
        method="GET",
        path="/info",
        summary="Versions of the server and its interface",
        answers={200: ServerInfo},
    ),
)
