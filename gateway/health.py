"""What the gateway knows of its node's health, asked of the shards when somebody asks."""

import asyncio
from typing import Any

from corvo import __version__
from corvo.errors import Refusal
from corvo.ops.operation import Answer
from corvo.queries.cluster import (
    ClusterStatus,
    GetStatus,
    MirrorView,
    ServerInfo,
    ShardStatus,
    ShardView,
)
from gateway.answers.database import ReadDb
from gateway.answers.lag import Lag, read_lag
from gateway.http import Request
from gateway.links import Shards

ASK_S = 1.0
LAG_MS_MAX = 10_000.0  # beyond this, lists are too old to be called ready


class Health:
    def __init__(self, shards: Shards, read_db: ReadDb, node_id: str, draining: asyncio.Event) -> None:
        self._shards = shards
        self._read_db = read_db
        self._node_id = node_id
        self._draining = draining

    async def statuses(self) -> list[ShardStatus | BaseException]:
        outcomes: list[Any] = await self._shards.ask_each(lambda shard: GetStatus(), ASK_S)
        return outcomes

    async def lag(self) -> Lag | None:
        try:
            return await read_lag(self._read_db)
        except Refusal:
            return None

    async def leaderless(self) -> list[str]:
        """What keeps the shards from serving, a sentence each; empty when all have a leader."""
        return [
            f"shard {shard}: {status if isinstance(status, BaseException) else 'no leader'}"
            for shard, status in enumerate(await self.statuses())
            if isinstance(status, BaseException) or not status.leader
        ]

    async def unready(self) -> list[str]:
        faults = ["draining"] if self._draining.is_set() else []
        faults += await self.leaderless()
        lag = await self.lag()
        if lag is None:
            faults.append("read.db cannot be read")
        elif lag.lag_ms > LAG_MS_MAX:
            faults.append(f"read.db is {lag.lag_ms:.0f} ms behind")
        return faults

    async def cluster_status(self, body: None, request: Request) -> Answer:
        statuses, lag = await asyncio.gather(self.statuses(), self.lag())
        views = [_shard_view(shard, status) for shard, status in enumerate(statuses)]
        known = [status for status in statuses if isinstance(status, ShardStatus)]
        is_healthy = all(view.error is None for view in views) and lag is not None
        return Answer(
            200,
            ClusterStatus(
                status="healthy" if is_healthy else "degraded",
                mode="single",
                node_id=self._node_id,
                version=__version__,
                shards=len(views),
                fsync=all(status.fsync for status in known),
                groups=views,
                mirror=None if lag is None else MirrorView(round(lag.lag_ms, 3), lag.generation, lag.rows_total),
            ),
        )

    async def info(self, body: None, request: Request) -> Answer:
        return Answer(200, ServerInfo(__version__, __version__))


def _shard_view(shard: int, status: ShardStatus | BaseException) -> ShardView:
    if isinstance(status, BaseException):
        return ShardView(shard, "", "unreachable", "", 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0, error=str(status))
    entries, writes = status.batch_size.count, status.sync_time_s.count
    return ShardView(
        shard=shard,
        node_id=status.node_id,
        state=status.role,
        leader_id=status.leader,
        term=status.term,
        commit_index=status.commit_index,
        applied_index=status.applied_index,
        log_entries=status.log_last_index - status.log_first_index + 1,
        operations_total=status.operations_total,
        entries_total=status.entries_total,
        batch_size_avg=round(status.batch_size.total / entries, 2) if entries else 0.0,
        sync_ms_avg=round(status.sync_time_s.total / writes * 1000, 3) if writes else 0.0,
        waiting=status.calls_waiting,
        fetches_parked=status.fetches_parked,
        leases=status.leases,
        mirror_lag_entries=max(status.applied_index - status.mirror_cursor, 0),
        memory_bytes=status.memory_bytes,
    )
