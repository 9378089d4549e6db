"""Workers that have claimed jobs or wait for one now, merged from all shards that know them.

A key with a queue scope sees the workers of its queues, and of each only those queues and the jobs of those."""

import json
import time
from typing import Any

import msgspec
import sqlalchemy as sa

from corvo.model.namespaces import shown_name
from corvo.model.timestamps import to_rfc3339
from corvo.queries.workers import WorkerView
from gateway.readdb.schema import BY_WORKER, jobs, presence
from gateway.readdb.schema import workers as table
from gateway.search.database import Prepared, TenantDb, TenantSession
from gateway.search.tenancy import in_scope, of_tenant

WAITING_NS_MAX = 65_000_000_000  # the longest poll plus a margin; a waiting worker not seen for longer has left
ROWS_MAX = 20_000  # one row per worker and shard; a longer list helps nobody


def _select(of: sa.Table) -> sa.Select[Any]:
    return (
        sa.select(
            of.c.id, of.c.hostname, of.c.queues, of.c.last_heartbeat, of.c.started_at, of.c.pool_size, of.c.version
        )
        .where(of_tenant(of))
        .order_by(of.c.last_heartbeat.desc())
        .limit(ROWS_MAX)
    )


_ALL = (Prepared(_select(table)), Prepared(_select(presence)))
_ACTIVE_JOBS = (
    sa.select(jobs.c.worker_id, sa.func.count())
    .where(of_tenant(jobs))
    .where(jobs.c.state == sa.literal_column("'active'"))  # inline: a parameter would rule out the partial index
    .where(jobs.c.worker_id.is_not(None))
    .group_by(jobs.c.worker_id)
    .with_hint(jobs, f"INDEXED BY {BY_WORKER.name}", "sqlite")
)


class Sighting(msgspec.Struct):
    """One worker as seen by one shard, or merged from all shards."""

    hostname: str
    queues: set[str]
    last_heartbeat: str
    started_at: str
    pool_size: int
    version: str
    is_waiting: bool = False


async def answer(read_db: TenantDb) -> list[WorkerView]:
    """Most recently started first."""
    return await read_db.ask(_answer)


def _answer(session: TenantSession) -> list[WorkerView]:
    workers = _sightings(session, *_ALL)
    active = dict(session.rows(_ACTIVE_JOBS.where(*in_scope(jobs.c.queue, session.reach))))
    views = [_view(worker_id, worker, active.get(worker_id, 0)) for worker_id, worker in workers.items()]
    views.sort(key=lambda view: view.id)
    views.sort(key=lambda view: view.started_at, reverse=True)
    return views


def find(session: TenantSession, worker_id: str) -> Sighting | None:
    of_one = (_select(of).where(of.c.id == worker_id) for of in (table, presence))
    return _sightings(session, *of_one).get(worker_id)


def _sightings(
    session: TenantSession, known: sa.Select[Any] | Prepared, waiting: sa.Select[Any] | Prepared
) -> dict[str, Sighting]:
    """Workers by id, each merged from all shards."""
    workers: dict[str, Sighting] = {}
    oldest = to_rfc3339(time.time_ns() - WAITING_NS_MAX)
    for statement, is_waiting in ((known, False), (waiting, True)):
        for worker_id, hostname, queues, last_heartbeat, started_at, pool_size, version in session.rows(statement):
            if is_waiting and last_heartbeat < oldest:
                continue
            seen = Sighting(
                hostname=hostname or "",
                queues={shown_name(queue) for queue in json.loads(queues or "[]") if session.reach.holds(queue)},
                last_heartbeat=last_heartbeat,
                started_at=started_at,
                pool_size=pool_size or 0,
                version=version or "",
                is_waiting=is_waiting,
            )
            if session.reach.scope and not seen.queues:
                continue
            before = workers.get(worker_id)
            workers[worker_id] = seen if before is None else _merge(before, seen)
    return workers


def _merge(one: Sighting, other: Sighting) -> Sighting:
    newer, older = (one, other) if one.last_heartbeat >= other.last_heartbeat else (other, one)
    return Sighting(
        hostname=newer.hostname,
        queues=one.queues | other.queues,
        last_heartbeat=newer.last_heartbeat,
        started_at=min(one.started_at, other.started_at),
        pool_size=newer.pool_size or older.pool_size,  # not every call sends it
        version=newer.version or older.version,
        is_waiting=one.is_waiting or other.is_waiting,
    )


def _view(worker_id: str, worker: Sighting, active_jobs: int) -> WorkerView:
    return WorkerView(
        id=shown_name(worker_id),
        hostname=worker.hostname,
        queues=sorted(worker.queues),
        last_heartbeat=worker.last_heartbeat,
        started_at=worker.started_at,
        is_waiting=worker.is_waiting,
        active_jobs=active_jobs,
        pool_size=worker.pool_size,
        version=worker.version,
    )
