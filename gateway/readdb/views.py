"""Views over the mirrored tables: `queue_stats`, `rate_limit_window`, `events`, `audit_logs`, `tasks` and
`task_workers`.

The first four are tables of the seed schema that need no rows of their own:

    queue_stats         the totals of each queue, which `queues` has
    rate_limit_window   a row for each claim within a rate-limited queue's window; `queue_claims` has one per timestamp
    events              the events of the stored jobs, derived from their timestamps and errors. It has no sequence
                        numbers and omits deleted jobs. The event log itself stays on the shards: copying it would add a
                        row for each of a job's three to four events.
    audit_logs          a row for each request in the audit log: `audit_records` has the intent and the outcome of a
                        change in two rows. `status_code` is 0 while the outcome is not known.

`tasks` and `task_workers` have the columns of a task table in PostgreSQL, with the same names and order. The
differences are in `docs/how-to/use-postgresql.md`:

    state here                          status there
    pending, scheduled, retrying, held  pending
    active, not yet started             claimed      a two-phase claim that its worker has not started
    active                              running
    completed                           completed
    dead                                dead_letter
    cancelled                           failed

On PostgreSQL timestamps are `timestamptz` and payloads `jsonb`, if valid (`ddl.py`); on SQLite both are text. Ids are
text on both: they name the shard that created the job and are not UUIDs.
"""

from typing import Any

import sqlalchemy as sa

from corvo.model.job import Priority
from gateway.readdb.audit import audit_records
from gateway.readdb.schema import job_errors, jobs, presence, queues, workers

Column = sa.ColumnElement[Any]


_RATE_LIMIT_WINDOW = """CREATE VIEW rate_limit_window AS
WITH RECURSIVE each_claim(queue, fetched_at, left_over) AS (
    SELECT queue, fetched_at, claims FROM queue_claims
    UNION ALL SELECT queue, fetched_at, left_over - 1 FROM each_claim WHERE left_over > 1
)
SELECT queue, fetched_at FROM each_claim"""


def create_views(dialect: sa.Dialect) -> list[str]:
    is_sqlite = dialect.name == "sqlite"
    views = {
        "queue_stats": _queue_stats(),
        "events": _events(),
        "audit_logs": _audit_logs(),
        "tasks": _tasks(is_sqlite),
        "task_workers": _task_workers(is_sqlite),
    }
    return [_RATE_LIMIT_WINDOW] + [
        f"CREATE VIEW {name} AS {view.compile(dialect=dialect, compile_kwargs={'literal_binds': True})}"
        for name, view in views.items()
    ]


def _queue_stats() -> sa.Select[Any]:
    return sa.select(
        queues.c.name.label("queue"),
        queues.c.enqueued,
        queues.c.completed_total.label("completed"),
        queues.c.failed,
        queues.c.dead_total.label("dead"),
    )


def _events() -> sa.CompoundSelect[Any]:
    """The job has the newest attempt and its errors have the failed ones; no attempt appears twice."""

    def of_job(kind: str, at: Column, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
        columns = (sa.literal(kind).label("type"), jobs.c.id.label("job_id"), jobs.c.queue, at.label("created_at"))
        return sa.select(*columns).where(*conditions)

    def of_error(kind: str, at: Column, condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
        return sa.select(sa.literal(kind), job_errors.c.job_id, job_errors.c.queue, at).where(condition)

    is_in_errors = sa.exists(
        sa.select(sa.literal_column("1")).where(
            job_errors.c.job_id == jobs.c.id,
            job_errors.c.shard == jobs.c.shard,
            job_errors.c.started_at == jobs.c.started_at,
        )
    )
    return sa.union_all(
        of_job("enqueued", jobs.c.created_at),
        of_job("started", jobs.c.started_at, jobs.c.started_at.is_not(None), sa.not_(is_in_errors)),
        of_error("started", job_errors.c.started_at, job_errors.c.started_at.is_not(None)),
        of_error("failed", job_errors.c.created_at, job_errors.c.fingerprint.is_not(None)),
        of_job("completed", jobs.c.completed_at, jobs.c.completed_at.is_not(None)),
        of_job("dead", jobs.c.failed_at, jobs.c.state == "dead"),
        of_job("cancelled", jobs.c.failed_at, jobs.c.state == "cancelled"),
    )


def _audit_logs() -> sa.Select[Any]:
    request, outcome = audit_records.alias("request"), audit_records.alias("outcome")
    # The indexes have these conditions too; SQLite uses them only where the query says the same.
    is_its = sa.and_(outcome.c.intent == request.c.id, outcome.c.intent > 0)
    return (
        sa.select(
            request.c.id,
            request.c.namespace,
            request.c.principal,
            request.c.role,
            request.c.method,
            request.c.path,
            sa.func.coalesce(outcome.c.status_code, request.c.status_code).label("status_code"),
            sa.func.coalesce(outcome.c.metadata, request.c.metadata).label("metadata"),
            request.c.created_at,
        )
        .select_from(request.outerjoin(outcome, is_its))
        .where(request.c.intent == 0)
    )


def _tasks(is_sqlite: bool) -> sa.Select[Any]:
    state, claimed_at = jobs.c.state, sa.func.coalesce(jobs.c.claimed_at, jobs.c.started_at)
    known = (jobs.c.created_at, jobs.c.claimed_at, jobs.c.started_at, jobs.c.completed_at, jobs.c.failed_at)
    last_error = (
        sa.select(job_errors.c.error)
        .where(job_errors.c.job_id == jobs.c.id, job_errors.c.shard == jobs.c.shard)
        .order_by(job_errors.c.claim.desc())
        .limit(1)
        .scalar_subquery()
    )
    columns: dict[str, Column] = {
        "id": jobs.c.id,
        "type": jobs.c.queue,
        "payload": jobs.c.payload if is_sqlite else sa.literal_column("jobs.payload_json"),
        "status": sa.case(
            (sa.and_(state == "active", jobs.c.started_at.is_(None)), "claimed"),
            (state == "active", "running"),
            (state == "completed", "completed"),
            (state == "dead", "dead_letter"),
            (state == "cancelled", "failed"),
            else_="pending",
        ),
        "priority": int(Priority.NORMAL) - jobs.c.priority,  # higher is more urgent, ordinary is 0
        "idempotency_key": sa.func.coalesce(jobs.c.idempotency_key, jobs.c.unique_key),
        "worker_id": jobs.c.worker_id,
        "created_at": _moment(jobs.c.created_at, is_sqlite),
        "claimed_at": _moment(claimed_at, is_sqlite),
        "started_at": _moment(jobs.c.started_at, is_sqlite),
        "completed_at": _moment(
            sa.case((state == "completed", jobs.c.completed_at), (state.in_(("dead", "cancelled")), jobs.c.failed_at)),
            is_sqlite,
        ),
        "updated_at": _moment(_newest(known, is_sqlite), is_sqlite),
        "attempts": jobs.c.attempt,
        "max_retries": jobs.c.max_retries,
        "last_error": last_error,
        "next_retry_at": _moment(sa.case((state == "retrying", jobs.c.scheduled_at)), is_sqlite),
    }
    return sa.select(*[column.label(name) for name, column in columns.items()])


def _task_workers(is_sqlite: bool) -> sa.Select[Any]:
    """Workers merged from all shards, including those that only wait. None is a leader: the server leads."""
    names = ("id", "hostname", "started_at", "last_heartbeat", "pool_size", "version")
    seen = sa.union_all(*[sa.select(*[table.c[name] for name in names]) for table in (workers, presence)]).subquery("s")
    columns: dict[str, Column] = {
        "id": seen.c.id,
        "hostname": sa.func.coalesce(sa.func.max(seen.c.hostname), ""),
        "started_at": _moment(sa.func.min(seen.c.started_at), is_sqlite),
        "last_heartbeat": _moment(sa.func.max(seen.c.last_heartbeat), is_sqlite),
        "pool_size": sa.func.coalesce(sa.func.max(seen.c.pool_size), 0),
        "version": sa.func.max(seen.c.version),
        "is_leader": sa.literal_column("0") if is_sqlite else sa.false(),
        "leader_until": _moment(sa.null(), is_sqlite),
    }
    return sa.select(*[column.label(name) for name, column in columns.items()]).group_by(seen.c.id)


def _moment(text: Column, is_sqlite: bool) -> Column:
    return text if is_sqlite else sa.cast(text, sa.TIMESTAMP(timezone=True))


def _newest(moments: tuple[Column, ...], is_sqlite: bool) -> Column:
    if not is_sqlite:
        return sa.func.greatest(*moments)  # ignores NULL
    return sa.func.max(*[sa.func.coalesce(moment, "") for moment in moments])
