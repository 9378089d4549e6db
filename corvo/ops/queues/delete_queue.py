"""Delete a queue with all its jobs, controls and counters.

Refused while jobs are active, unless forced: the workers' reports are then refused. Ended jobs are in no index of the
queue, so the deletion reads the jobs of the shard in the order of their ids, in slices, from the queue's first job
until the queue is empty. From the first slice on, no job is claimed. Jobs created meanwhile stay: they are the first of
a new queue of that name.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import Refusal, invalid
from corvo.model.events import EventKind
from corvo.model.job import Controls, Job, Moment, Queue, decode_job
from corvo.model.lifecycle import State
from corvo.model.limits import CLAIMED_BYTES_MAX, JOBS_PER_REQUEST_MAX
from corvo.model.namespaces import shown_name
from corvo.model.sharding import shard_of_queue
from corvo.ops.queues.control import QueueChanged, ask_queue
from corvo.queries.queue_names import KnowsQueue, checked_name
from corvo.state import keys
from corvo.state.tables import Tables
from corvo.state.transitions import remove

_DELETED_BY = b'{"reason":"queue_deleted"}'


class DeleteQueueQuery(msgspec.Struct, forbid_unknown_fields=True):
    confirm: Annotated[bool, Meta(description="must be true")] = False
    force: Annotated[bool, Meta(description="also while jobs are active")] = False


class Looked(msgspec.Struct, array_like=True):
    """Progress of a deletion."""

    upto: int  # jobs created until then are deleted
    start: bytes  # the next key to look at; empty: the queue is gone


class DeleteQueue(Operation, tag=14):
    queue: str
    is_forced: bool = False
    upto: Moment = 0  # 0: now
    start: bytes = b""  # empty: the first slice

    result: ClassVar[Any] = Looked

    def apply(self, tables: Tables) -> Looked:
        queue = tables.find_queue(self.queue)
        if queue is None or 0 < self.upto < queue.created_at:  # gone; there may be a new one of that name
            return Looked(self.upto, b"")
        upto = self.upto or tables.now
        if not self.start:
            self._begin(tables, queue)
        found, start = self._look(tables, queue, upto)
        for job in found:
            remove(tables, job, _DELETED_BY)
        if start and any(queue.counts):
            return Looked(upto, start)
        self._end(tables, queue)
        return Looked(upto, b"")

    def _begin(self, tables: Tables, queue: Queue) -> None:
        active = queue.counts[State.ACTIVE]
        if active and not self.is_forced:
            raise Refusal(
                "WRONG_STATE",
                f"{active} jobs of {shown_name(self.queue)} are active; drain the queue first, or delete it with"
                " force=true",
            )
        controls = queue.controls or Controls()
        tables.queue(self.queue).controls = msgspec.structs.replace(controls, is_paused=True)

    def _look(self, tables: Tables, queue: Queue, upto: int) -> tuple[list[Job], bytes]:
        """Jobs to remove, and where to continue."""
        found: dict[str, Job] = {}
        left, room = JOBS_PER_REQUEST_MAX, CLAIMED_BYTES_MAX
        if not any(queue.counts):
            return [], b""
        if not self.start:
            touched = tables.touched_jobs()
            found = {job.id: job for job in touched if job.queue == self.queue and job.created_at <= upto}
        for key, raw in tables.overlay.scan(self.start or keys.job(queue.first_id), keys.prefix_end(keys.JOBS)):
            if not left or room <= 0:
                return list(found.values()), key
            left -= 1
            room -= len(raw)
            if decode_job(raw).queue == self.queue:
                job = tables.require_job(keys.job_id(key))  # its bytes may be older than this entry
                if job.queue == self.queue and job.created_at <= upto:
                    found[job.id] = job
        return list(found.values()), b""

    def _end(self, tables: Tables, queue: Queue) -> None:
        counts, cursors = queue.counts, queue.cursors
        tables.drop_queue(self.queue)
        if any(counts):
            born = tables.queue(self.queue)
            born.counts, born.cursors, born.enqueued = counts, cursors, sum(counts)
            born.first_id = queue.first_id
            tables.wake(self.queue)
        tables.event_log.tell(EventKind.QUEUE_DELETED, "", self.queue)


def _plan(context: PlanContext, query: DeleteQueueQuery, name: str) -> Plan:
    if not query.confirm:
        shown = shown_name(checked_name(name))
        raise invalid("confirm", f"deleting {shown} deletes its jobs too; confirm with ?confirm=true")

    def conclude(looked: Looked) -> Answer | Plan:
        if not looked.start:
            return Answer(200, QueueChanged("deleted"))
        return ask_queue(
            context, name, lambda queue: DeleteQueue(queue, query.force, looked.upto, looked.start), conclude
        )

    def delete(results: list[Any]) -> Answer | Plan:
        return ask_queue(context, name, lambda queue: DeleteQueue(queue, query.force, results[0]), conclude)

    return Plan([(shard_of_queue(checked_name(name), context.shard_count), KnowsQueue(name))], delete)


ENDPOINTS = (
    Endpoint(
        name="delete_queue",
        access="queues:delete",
        wait_s=600.0,
        method="DELETE",
        path="/queues/{name}",
        summary="Delete a queue and all its jobs",
        query=DeleteQueueQuery,
        answers={200: QueueChanged},
        refusals=("VALIDATION_ERROR", "QUEUE_NOT_FOUND", "WRONG_STATE"),
        plan=_plan,
    ),
)
