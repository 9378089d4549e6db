"""One queue, read from the shard that holds it: counts, controls, and the room that they leave now."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Read
from corvo.model.job import Controls, Moment, Priority, Queue
from corvo.model.lifecycle import State
from corvo.model.limits import RETENTION_MS_DEFAULT
from corvo.model.namespaces import shown_name
from corvo.model.sharding import shard_of_queue
from corvo.model.timestamps import to_rfc3339, to_rfc3339_or_none
from corvo.queries.queue_names import checked_name, require_queue
from corvo.state import keys
from corvo.state.tables import Tables


class RetentionView(msgspec.Struct):
    """Milliseconds; null means for ever."""

    completed_ms: int | None
    dead_ms: int | None
    cancelled_ms: int | None


class QueueDetail(msgspec.Struct, kw_only=True):
    name: str
    status: Annotated[str, Meta(description="`active`, `paused`, `draining` or `drained`")]
    paused: bool
    draining: bool
    created_at: str
    pending: int
    active: int
    held: int
    completed: int
    dead: int
    scheduled: int
    retrying: int
    cancelled: int
    enqueued: Annotated[int, Meta(description="jobs, ever")]
    completed_total: Annotated[int, Meta(description="jobs, ever")]
    failed: Annotated[int, Meta(description="attempts, ever")]
    left: Annotated[int, Meta(description="jobs that have not ended, held ones included")]
    max_concurrency: int | None = None
    rate_limit: int | None = None
    rate_window_ms: int | None = None
    rate_room: Annotated[int | None, Meta(description="claims that the throttle allows now")] = None
    rate_room_at: Annotated[str | None, Meta(description="when it allows the next claim, if none now")] = None
    retention: RetentionView
    oldest_pending_at: Annotated[
        str | None, Meta(description="when the job that has been pending longest became pending")
    ] = None
    oldest_pending_age_ms: int | None = None


class QueueRecord(msgspec.Struct, array_like=True):
    queue: Queue
    pending_since: int  # 0: nothing is pending
    rate_room: int  # -1: no throttle
    rate_room_at: int  # 0: there is room
    default_retention_ms: int | None = None  # 0: for ever; None: a former version did not say


class GetQueue(Read, tag=1055):
    name: str
    now: Moment  # of the gateway: the state's time is old on an idle shard

    result: ClassVar[Any] = QueueRecord

    def read(self, tables: Tables) -> QueueRecord:
        queue = require_queue(tables, self.name)
        record = QueueRecord(queue, _pending_since(tables, queue), -1, 0, tables.default_retention_ms)
        if queue.controls is not None and queue.controls.rate:
            now = max(self.now, tables.now)
            record.rate_room = tables.throttles.room(queue.name, queue.controls, now)
            if not record.rate_room:
                record.rate_room_at = tables.throttles.free_at(queue.name, queue.controls)
        return record


def _pending_since(tables: Tables, queue: Queue) -> int:
    """A position in the pending order is the time at which it was given."""
    found = []
    for priority in Priority:
        prefix = keys.pending_prefix(queue.name, priority)
        start = prefix + keys.pack_u64(queue.cursors[priority] + 1)
        first = next(iter(tables.overlay.scan(start, keys.prefix_end(prefix))), None)
        if first is not None:
            found.append(keys.pending_position(first[0], len(prefix))[0])
    return min(found, default=0)


def status_of(is_paused: bool, is_draining: bool, active: int) -> str:
    if is_draining:
        return "draining" if active else "drained"
    return "paused" if is_paused else "active"


def queue_detail(record: QueueRecord, now: int) -> QueueDetail:
    queue, since = record.queue, record.pending_since
    counts = queue.counts
    controls = queue.controls or Controls()
    default = RETENTION_MS_DEFAULT if record.default_retention_ms is None else record.default_retention_ms
    return QueueDetail(
        name=shown_name(queue.name),
        status=status_of(controls.is_paused, controls.is_draining, counts[State.ACTIVE]),
        paused=controls.is_paused,
        draining=controls.is_draining,
        created_at=to_rfc3339(queue.created_at),
        pending=counts[State.PENDING],
        active=counts[State.ACTIVE],
        held=counts[State.HELD],
        completed=counts[State.COMPLETED],
        dead=counts[State.DEAD],
        scheduled=counts[State.SCHEDULED],
        retrying=counts[State.RETRYING],
        cancelled=counts[State.CANCELLED],
        enqueued=queue.enqueued,
        completed_total=queue.completed,
        failed=queue.failed,
        left=sum(counts[state] for state in (State.PENDING, State.ACTIVE, State.HELD, State.SCHEDULED, State.RETRYING)),
        max_concurrency=controls.max_concurrency or None,
        rate_limit=controls.rate or None,
        rate_window_ms=controls.window_ms or None,
        rate_room=None if record.rate_room < 0 else record.rate_room,
        rate_room_at=to_rfc3339_or_none(record.rate_room_at),
        retention=RetentionView(*(_kept_ms(own, default) for own in controls.retention_ms)),
        oldest_pending_at=to_rfc3339_or_none(since),
        oldest_pending_age_ms=max(now - since, 0) // 1_000_000 if since else None,
    )


def _kept_ms(own: int, default: int) -> int | None:
    return (default if own < 0 else own) or None  # 0: for ever


def _plan(context: PlanContext, body: None, name: str) -> Plan:
    now = context.clock_ns()

    def conclude(results: list[Any]) -> Answer:
        return Answer(200, queue_detail(results[0], context.clock_ns()))

    return Plan([(shard_of_queue(checked_name(name), context.shard_count), GetQueue(name, now))], conclude)


ENDPOINTS = (
    Endpoint(
        name="get_queue",
        access="queues:read",
        method="GET",
        path="/queues/{name}",
        summary="One queue with its counts, its limits and its remaining jobs",
        answers={200: QueueDetail},
        refusals=("VALIDATION_ERROR", "QUEUE_NOT_FOUND"),
        plan=_plan,
    ),
)
