"""One worker, merged from all shards that know it, with its active jobs."""

from typing import Any

import msgspec
import sqlalchemy as sa

from corvo.model.errors import Refusal
from corvo.model.namespaces import shown_name
from corvo.model.reach import Reach
from corvo.queries.worker import JOBS_SHOWN_MAX, WorkerDetail, WorkerJob
from gateway.readdb.schema import BY_WORKER, jobs
from gateway.search.database import TenantDb, TenantSession
from gateway.search.tenancy import in_scope, of_tenant
from gateway.search.workers import find


async def answer(read_db: TenantDb, worker_id: str) -> WorkerDetail:
    def question(session: TenantSession) -> WorkerDetail:
        worker = find(session, worker_id)
        if worker is None:
            raise Refusal("WORKER_NOT_FOUND", f"no worker {shown_name(worker_id)!r} has been seen recently")
        ((active_jobs,),) = session.rows(_active(session.reach, worker_id, sa.func.count()))
        return WorkerDetail(
            id=shown_name(worker_id),
            hostname=worker.hostname,
            queues=sorted(worker.queues),
            last_heartbeat=worker.last_heartbeat,
            started_at=worker.started_at,
            is_waiting=worker.is_waiting,
            active_jobs=active_jobs,
            pool_size=worker.pool_size,
            version=worker.version,
            jobs=[_job(*row) for row in session.rows(_jobs(session.reach, worker_id))],
        )

    return await read_db.ask(question)


def _jobs(reach: Reach, worker_id: str) -> sa.Select[Any]:
    columns = (jobs.c.id, jobs.c.queue, jobs.c.attempt, jobs.c.started_at, jobs.c.lease_expires_at, jobs.c.progress)
    return _active(reach, worker_id, *columns).order_by(jobs.c.started_at).limit(JOBS_SHOWN_MAX)


def _active(reach: Reach, worker_id: str, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return (
        sa.select(*columns)
        .select_from(jobs)
        .where(jobs.c.state == sa.literal_column("'active'"))  # inline: a parameter would rule out the partial index
        .where(of_tenant(jobs), jobs.c.worker_id == worker_id, *in_scope(jobs.c.queue, reach))
        .with_hint(jobs, f"INDEXED BY {BY_WORKER.name}", "sqlite")
    )


def _job(job_id: str, queue: str, attempt: int, started_at: str, lease_expires_at: str, progress: str) -> WorkerJob:
    return WorkerJob(
        id=job_id,
        queue=shown_name(queue),
        attempt=attempt,
        started_at=started_at,
        lease_expires_at=lease_expires_at,
        progress=msgspec.Raw(progress.encode()) if progress else None,
    )
