"""Status of shards and nodes, and the routes that show it."""

from bisect import bisect_left
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint, Query, Read
from corvo.model.incidents import Incident
from corvo.queries.members import GroupMembers
from corvo.state.tables import Tables


class Histogram(msgspec.Struct, array_like=True):
    """Counts per bucket (not cumulative); the last bucket has no upper bound."""

    bounds: list[float]
    counts: list[int]
    total: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def observe(self, value: float, times: int = 1) -> None:
        self.total += value * times
        self.counts[bisect_left(self.bounds, value)] += times

    def quantile(self, part: float) -> float:
        """Estimated within its bucket, as Prometheus does; of values beyond the last bound, that bound."""
        wanted, below, lower = part * self.count, 0, 0.0
        for bound, here in zip(self.bounds, self.counts, strict=False):
            if here and below + here >= wanted:
                return lower + (bound - lower) * (wanted - below) / here
            below, lower = below + here, bound
        return lower if self.count else 0.0


class ReplicaStatus(msgspec.Struct, array_like=True):
    """One replica, as its leader sees it."""

    node_id: str
    match_index: int
    mode: str  # probe, replicate, snapshot
    is_learner: bool
    is_caught_up: bool
    silent_ms: float


class TransferStatus(msgspec.Struct, array_like=True):
    """A state on its way from one replica to another."""

    node_id: str  # the other end
    is_outgoing: bool
    index: int
    records: int
    bytes: int


class JobFigures(msgspec.Struct, array_like=True):
    """What became of jobs in entries that this replica applied as the leader, since its process started. Each entry has
    one leader, so the figures of all replicas add up."""

    enqueued: int = 0
    completed: int = 0
    failed: int = 0  # attempts
    dead: int = 0
    wait_s: Histogram = msgspec.field(default_factory=lambda: Histogram([], [0]))  # until the first claim
    run_s: Histogram = msgspec.field(default_factory=lambda: Histogram([], [0]))  # of attempts that completed


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
    members: GroupMembers = msgspec.field(default_factory=GroupMembers)
    replicas: list[ReplicaStatus] = []  # what the leader believes; empty elsewhere
    transfers: list[TransferStatus] = []
    log_bytes: int = 0
    elections_total: int = 0  # terms begun since this process started
    nodes: dict[str, str] = {}  # address by name, as the group has agreed
    refused_total: int = 0  # messages that were not from a replica of this group
    jobs: JobFigures = msgspec.field(default_factory=JobFigures)
    waits_for: str = ""  # what keeps the replica from being up to date; empty: nothing
    snapshot_term: int = 0  # of the entry before the first one that the log has
    state_bytes: int = 0  # of the state on disk, about


class GetStatus(Query, tag=1020):
    """Status of the replica that is asked, or of the replica on the given node."""

    result: ClassVar[Any] = ShardStatus

    node_id: str = ""


class MembershipView(msgspec.Struct):
    """`outgoing` is not empty during a change of voters."""

    voters: list[str] = []
    learners: list[str] = []
    outgoing: list[str] = []


class ReplicaView(msgspec.Struct):
    """One replica of a shard: its own status, and what its leader knows about it."""

    node_id: str
    role: str
    term: int = 0
    commit_index: int = 0
    applied_index: int = 0
    lag: int | None = None  # committed entries that this replica has not applied; None: not known
    last_contact_ms: float | None = None  # since the leader heard from it; None: it leads, or no leader is known
    mode: str = ""  # how the leader replicates to it: probe, replicate, snapshot
    log_entries: int = 0
    log_bytes: int = 0
    state_hash: str = ""
    error: str | None = None


class TransferView(msgspec.Struct):
    """A state on its way from one replica to another."""

    sender: str
    receiver: str
    index: int
    records: int
    bytes: int


class GetIndex(Read, tag=1021):
    """The log index up to which the mirror must have read to include every acknowledged change."""

    result: ClassVar[Any] = int

    def read(self, tables: Tables) -> int:
        return tables.applied.index


class BucketView(msgspec.Struct):
    le: Annotated[float | None, Meta(description="upper bound in seconds; null: none")]
    count: Annotated[int, Meta(description="values up to this bound")]


class HistogramView(msgspec.Struct):
    """Of times in seconds, since the process started."""

    count: int
    avg: float
    p50: Annotated[float, Meta(description="half of the values are not above it; estimated from the buckets")]
    p90: float
    p99: float
    buckets: list[BucketView] = []


class SnapshotView(msgspec.Struct):
    """The state on disk stands for all entries that the log no longer has; it is what another node is sent."""

    count: Annotated[int, Meta(description="1, or 0 while the log still has its first entry")]
    latest_index: Annotated[int, Meta(description="the last entry that only the snapshot has")]
    transfers: Annotated[int, Meta(description="snapshots on their way to other nodes now")]
    latest_term: Annotated[int, Meta(description="of that entry")] = 0
    latest_id: Annotated[str, Meta(description="term and index; empty while there is none")] = ""
    latest_size: Annotated[int, Meta(description="bytes of the state on disk, estimated without reading it")] = 0


class ShardView(msgspec.Struct):
    """The replica on the node that is asked, and its whole group."""

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
    members: MembershipView = msgspec.field(default_factory=MembershipView)
    replicas: list[ReplicaView] = []
    transfers: list[TransferView] = []
    queue_time_hist: Annotated[HistogramView | None, Meta(description="from arrival at the shard to the log")] = None
    apply_time_hist: Annotated[HistogramView | None, Meta(description="applying one entry")] = None
    snapshot: SnapshotView | None = None


class NodeView(msgspec.Struct):
    node_id: str
    address: str  # where other nodes reach it; empty for a single node
    is_reachable: bool


class MirrorView(msgspec.Struct):
    """The read database of the node that is asked. `generation` changes with each rebuild."""

    lag_ms: float
    generation: str
    rows_total: int
    rebuilt_at: str = ""
    rebuild_ms: float = 0.0


LEVELS = ("healthy", "degraded", "unavailable")


class HealthReport(msgspec.Struct, frozen=True):
    """How the node that is asked sees itself and its cluster. `level` is one of LEVELS."""

    level: str
    reasons: list[str] = []

    @property
    def number(self) -> int:
        return LEVELS.index(self.level)

    @property
    def sentence(self) -> str:
        return f"{self.level}: {'; '.join(self.reasons)}" if self.reasons else self.level


class SqliteMirrorView(msgspec.Struct):
    """The mirror, under the names that clients of the original know. PostgreSQL may take the place of SQLite."""

    is_async: Annotated[bool, Meta(description="always true: no write waits for it")] = msgspec.field(name="async")
    dropped: Annotated[int, Meta(description="always 0: a change that cannot be written is written later")]
    applied: Annotated[int, Meta(description="rows written, ever")]
    lag: Annotated[int, Meta(description="entries that the shards have and the mirror has not acknowledged")]
    lag_ms: float


class SqliteRebuildView(msgspec.Struct):
    """How the read database came to be, last time."""

    ran: bool
    last_started_at: str
    last_duration_ms: float
    last_success: bool


class ClusterStatus(msgspec.Struct):
    """`status` and `reasons` are a HealthReport; `restarts` and `incidents` are of the node that is asked."""

    status: str
    mode: str
    node_id: str
    version: str
    shards: int
    fsync: bool
    groups: list[ShardView]
    mirror: MirrorView | None
    nodes: list[NodeView] = []
    reasons: list[str] = []
    restarts: dict[str, int] = {}  # of each process since the node started
    incidents: list[Incident] = []
    queue_time_hist: Annotated[HistogramView | None, Meta(description="of all shards of this node")] = None
    apply_time_hist: Annotated[HistogramView | None, Meta(description="of all shards of this node")] = None
    sqlite_mirror: SqliteMirrorView | None = None
    sqlite_rebuild: SqliteRebuildView | None = None

    @property
    def health(self) -> HealthReport:
        return HealthReport(self.status, self.reasons)


class ServerInfo(msgspec.Struct):
    server_version: str
    api_version: str


ENDPOINTS = (
    Endpoint(
        name="cluster_status",
        access="cluster:read",
        method="GET",
        path="/cluster/status",
        summary="Status and figures of every shard and all its replicas",
        answers={200: ClusterStatus},
    ),
    Endpoint(
        name="info",
        access="open",
        method="GET",
        path="/info",
        summary="Versions of the server and the API",
        answers={200: ServerInfo},
    ),
)
