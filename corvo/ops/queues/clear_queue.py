"""Clear a queue: delete its waiting jobs (pending, scheduled and retrying).

Active, ended and held jobs stay. It works in slices: one operation looks at a bounded number of jobs, and the gateway
continues where it stopped. Jobs created after the first slice stay, so that the clear ends however fast producers are.
Jobs that fall due meanwhile move to an index that is scanned later.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.events import EventKind
from corvo.model.job import Count, Job, Moment, Priority, Queue, RequestId
from corvo.model.job_extras import bytes_of
from corvo.model.limits import CLAIMED_BYTES_MAX, JOBS_PER_REQUEST_MAX
from corvo.ops.queues.control import ask_queue
from corvo.queries.queue_names import require_queue
from corvo.state import keys
from corvo.state.tables import Tables
from corvo.state.transitions import remove

_DELETED_BY = b'{"reason":"cleared"}'


class QueueCleared(msgspec.Struct):
    status: str
    deleted: Annotated[int, Meta(description="jobs")]


class Slice(msgspec.Struct, array_like=True):
    """Progress of a clear."""

    removed: int  # by all its slices
    upto: int  # jobs created until then are deleted
    line: int
    start: bytes  # key in that line (see `_lines`); empty: all lines are done


class ClearQueue(Operation, tag=13):
    ask_id: RequestId
    queue: str
    upto: Moment = 0  # 0: the first slice
    line: Count = 0
    start: bytes = b""
    removed: Count = 0

    result: ClassVar[Any] = Slice

    def apply(self, tables: Tables) -> Slice:
        queue = tables.find_queue(self.queue)
        if queue is None and self.upto:  # deleted meanwhile
            return Slice(self.removed, self.upto, 0, b"")
        queue = require_queue(tables, self.queue)
        is_begun = queue.cleared[0] == self.ask_id
        removed = queue.cleared[1] if is_begun else self.removed
        if is_begun and queue.cleared[2] < 0:  # it is done: jobs that wait here were created since
            return Slice(removed, -queue.cleared[2], len(_lines(self.queue)), b"")
        upto = self.upto or (queue.cleared[2] if is_begun else tables.now)
        if not is_begun and not self.upto:
            tables.event_log.tell(EventKind.QUEUE_CLEARED, "", self.queue)
        found, line, start = self._look(tables, queue, upto)
        for job in found:
            remove(tables, job, _DELETED_BY)
        cleared = (self.ask_id, removed + len(found), upto if start else -upto)
        if cleared != queue.cleared:
            tables.queue(self.queue).cleared = cleared
        return Slice(cleared[1], upto, line, start)

    def _look(self, tables: Tables, queue: Queue, upto: int) -> tuple[list[Job], int, bytes]:
        """Jobs to remove, and where to continue."""
        found: list[Job] = []
        left, room = JOBS_PER_REQUEST_MAX, CLAIMED_BYTES_MAX
        lines = _lines(self.queue)
        for number in range(self.line, len(lines)):
            prefix, priority = lines[number]
            start = self.start if number == self.line and self.start else prefix
            gapless = False
            if priority is not None:
                first = prefix + keys.pack_u64(queue.cursors[priority] + 1)
                gapless = start <= first
                start = max(start, first)
            for key, _ in tables.overlay.scan(start, keys.prefix_end(prefix)):
                if not left or room <= 0:
                    return found, number, key
                left -= 1
                position, job_id = keys.pending_position(key, len(prefix))
                job = tables.require_job(job_id)
                room -= len(job.payload) + bytes_of(job.extras)
                if job.created_at > upto:
                    gapless = False
                    continue
                found.append(job)
                if gapless and priority is not None:  # later scans skip the tombstones
                    queue.cursors[priority] = position
        return found, len(lines), b""


def _lines(queue: str) -> list[tuple[bytes, Priority | None]]:
    """The indexes of waiting jobs, in the order in which a job can move from one to the next."""
    return [
        (keys.scheduled_prefix(queue), None),
        (keys.retrying_prefix(queue), None),
        *((keys.pending_prefix(queue, priority), priority) for priority in Priority),
    ]


def _plan(context: PlanContext, body: None, name: str) -> Plan:
    ask_id = context.mint.claim_id()

    def conclude(done: Slice) -> Answer | Plan:
        if not done.start:
            return Answer(200, QueueCleared("cleared", done.removed))
        return ask_queue(
            context,
            name,
            lambda queue: ClearQueue(ask_id, queue, done.upto, done.line, done.start, done.removed),
            conclude,
        )

    return ask_queue(context, name, lambda queue: ClearQueue(ask_id, queue), conclude)


ENDPOINTS = (
    Endpoint(
        name="clear_queue",
        access="queues:clear",
        wait_s=600.0,
        method="POST",
        repeats="by key",
        path="/queues/{name}/clear",
        summary="Delete the waiting jobs of a queue: pending, scheduled and retrying",
        answers={200: QueueCleared},
        refusals=("VALIDATION_ERROR", "QUEUE_NOT_FOUND"),
        plan=_plan,
    ),
)
