"""What the gateway knows of its node's health, asked of the shards when somebody asks."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from corvo import __version__
from corvo.endpoint import Answer
from corvo.model.errors import Refusal
from corvo.model.incidents import NodeRecord
from corvo.model.timestamps import to_rfc3339
from corvo.queries.cluster import (
    ClusterStatus,
    GetStatus,
    HealthReport,
    MirrorView,
    ServerInfo,
    ShardStatus,
    ShardView,
    SqliteMirrorView,
    SqliteRebuildView,
)
from corvo.runtime.heartbeat import read_heartbeats
from corvo.runtime.process import read_record
from gateway.http.messages import Request
from gateway.search.database import ReadDb
from gateway.search.lag import Lag, read_lag
from gateway.shards.client import Shards
from gateway.shards.health_scale import health_of, read_db_fault
from gateway.shards.replicas import Group, histogram_view, is_cluster, members_of, node_views, shard_view

ASK_S = 1.0
# What the shard here says when the replica elsewhere says nothing; its own words are for those who ask for a change.
SILENCE = frozenset({"NOT_LEADER", "OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "SHARD_UNAVAILABLE"})


# How long a start waits for lists that are old. A node with old lists serves jobs all the same; and when every node of
# a busy cluster is behind, a load balancer that drops them all would stop the work.
LAG_WAIT_S = 15.0


class ShardHealth(msgspec.Struct, omit_defaults=True):
    """One shard as its replica on this node sees it."""

    shard: int
    raft_state: str = ""
    leader: str = ""
    waits_for: str = ""
    error: str = ""


class NodeState(NamedTuple):
    """One look at everything that this node reaches."""

    owns: list[ShardStatus | BaseException]  # the replicas here, by shard
    groups: list[Group]
    lag: Lag | None
    report: HealthReport

    def shards(self) -> list[ShardHealth]:
        return [_shard_health(shard, own) for shard, own in enumerate(self.owns)]


class Health:
    def __init__(
        self,
        shards: Shards,
        read_db: ReadDb,
        node_id: str,
        draining: asyncio.Event,
        run_dir: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._started = clock()
        self._shards = shards
        self._read_db = read_db
        self._node_id = node_id
        self._draining = draining
        self._run_dir = run_dir

    def hung(self) -> list[str]:
        """Processes of this node whose heartbeat is older than its limit, a sentence each. Asks no process."""
        now_ns = time.monotonic_ns()
        return [
            f"{name} has given no heartbeat for {beat.silent_s(now_ns):.0f} s"
            for name, beat in read_heartbeats(self._run_dir).items()
            if beat.is_late(now_ns)
        ]

    async def statuses(self) -> list[ShardStatus | BaseException]:
        calls = [self._shards.ask(shard, GetStatus(), timeout_s=ASK_S) for shard in range(len(self._shards))]
        outcomes: list[ShardStatus | BaseException] = await asyncio.gather(
            *(call.future for call in calls), return_exceptions=True
        )
        return outcomes

    async def lag(self) -> Lag | None:
        try:
            return await read_lag(self._read_db)
        except Refusal:
            return None

    async def look(self) -> NodeState:
        owns, lag = await asyncio.gather(self.statuses(), self.lag())
        groups = await asyncio.gather(*(self._group(shard, own) for shard, own in enumerate(owns)))
        report = health_of(owns, groups, None if lag is None else lag.lag_ms, self.hung())
        return NodeState(owns, groups, lag, report)

    def unready(self, state: NodeState) -> list[str]:
        """Why this node should get no requests, a sentence each. One that is only degraded serves them."""
        faults = ["draining"] if self._draining.is_set() else []
        if state.report.level == "unavailable":
            return [*faults, state.report.sentence]
        fault = read_db_fault(None if state.lag is None else state.lag.lag_ms)
        is_starting = self._clock() - self._started < LAG_WAIT_S
        if not fault or (state.lag is not None and not is_starting):
            return faults
        return [
            *faults,
            fault if state.lag is None else f"{fault}; after {LAG_WAIT_S:g} s the node is ready without it",
        ]

    def record(self) -> NodeRecord:
        """What happened to the processes of this node."""
        return read_record(self._run_dir)

    async def cluster_status(self, body: None, request: Request) -> Answer:
        owns, groups, lag, report = await self.look()
        views = [shard_view(shard, own, group) for shard, (own, group) in enumerate(zip(owns, groups, strict=True))]
        known = [own for own in owns if isinstance(own, ShardStatus)]
        record = self.record()
        return Answer(
            200,
            ClusterStatus(
                status=report.level,
                mode="cluster" if is_cluster(known) else "single",
                node_id=self._node_id,
                version=__version__,
                shards=len(views),
                fsync=all(status.fsync for status in known),
                groups=views,
                mirror=None if lag is None else _mirror_view(lag),
                nodes=node_views(self._node_id, groups),
                reasons=report.reasons,
                restarts=record.restarts,
                incidents=record.incidents,
                queue_time_hist=histogram_view([status.queue_time_s for status in known]),
                apply_time_hist=histogram_view([status.apply_time_s for status in known]),
                sqlite_mirror=None if lag is None else _sqlite_mirror_view(lag, views),
                sqlite_rebuild=None if lag is None else _sqlite_rebuild_view(lag),
            ),
        )

    async def _group(self, shard: int, own: ShardStatus | BaseException) -> Group:
        """The answers of all replicas of a shard. Those on other nodes are asked through the one here."""
        if isinstance(own, BaseException):
            return {}
        others = [node_id for node_id in members_of(own) if node_id != own.node_id]
        outcomes = await asyncio.gather(*(self._ask_other(shard, one) for one in others), return_exceptions=True)
        return {own.node_id: own, **dict(zip(others, outcomes, strict=True))}

    async def _ask_other(self, shard: int, node_id: str) -> ShardStatus:
        try:
            status: ShardStatus = await self._shards.ask(shard, GetStatus(node_id), timeout_s=ASK_S)
        except Refusal as refusal:
            if refusal.code in SILENCE:
                raise Refusal("SHARD_UNAVAILABLE", f"{node_id} does not answer") from None
            raise
        return status

    async def info(self, body: None, request: Request) -> Answer:
        return Answer(200, ServerInfo(__version__, __version__))


def _shard_health(shard: int, status: ShardStatus | BaseException) -> ShardHealth:
    if isinstance(status, BaseException):
        return ShardHealth(shard, error=str(status))
    return ShardHealth(shard, status.role, status.leader, status.waits_for)


def _mirror_view(lag: Lag) -> MirrorView:
    return MirrorView(
        lag_ms=round(lag.lag_ms, 3),
        generation=lag.generation,
        rows_total=lag.rows_total,
        rebuilt_at=to_rfc3339(int(lag.rebuilt_at * 1e9)),
        rebuild_ms=round(lag.rebuild_ms, 3),
    )


def _sqlite_mirror_view(lag: Lag, views: list[ShardView]) -> SqliteMirrorView:
    return SqliteMirrorView(
        is_async=True,
        dropped=0,
        applied=lag.rows_total,
        lag=sum(view.mirror_lag_entries for view in views),
        lag_ms=round(lag.lag_ms, 3),
    )


def _sqlite_rebuild_view(lag: Lag) -> SqliteRebuildView:
    started_at = lag.rebuilt_at - lag.rebuild_ms / 1000
    return SqliteRebuildView(True, to_rfc3339(int(started_at * 1e9)), round(lag.rebuild_ms, 3), True)
