"""Move: put a job into another queue, with its id, its history and its links to other jobs.

If the other queue is on another shard, an errand carries the job there; the old shard stores where it went and forwards
requests for it. Its unique and idempotency keys go with it if they are free there. An active job cannot move, because
this shard keeps its worker's lease.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import Refusal
from corvo.model.job import Job, Priority, QueueName, RequestId
from corvo.model.lifecycle import State
from corvo.model.namespaces import shown_name
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.actions import REFUSALS, Done, is_repeated, note, plan_action
from corvo.rules.errands.move_in import MoveIn, arrive
from corvo.state import keys, locks
from corvo.state.tables import Tables
from corvo.state.transitions import reindex, unindex


class MoveBody(Body):
    queue: QueueName
    reset_attempts: Annotated[bool, Meta(description="count its attempts from zero again")] = False
    keep_priority: Annotated[bool, Meta(description="false: it is `normal` in its new queue")] = True


class Move(Operation, tag=27):
    ask_id: RequestId
    job_id: str
    queue: str
    resets_attempts: bool = False
    resets_priority: bool = False

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.require_job(self.job_id)
        if is_repeated(job, self.ask_id):
            return
        if job.queue == self.queue:
            note(job, self.ask_id)
            tables.touch(job)
            return
        if job.state is State.ACTIVE:
            raise Refusal(
                "WRONG_STATE",
                "cannot move a job that is active, because its worker holds a lease in its queue;"
                " hold it first, or wait until it has ended",
            )
        data = msgspec.json.encode({"from": shown_name(job.queue)})
        extras = note(job, self.ask_id)
        locks.forget(tables, job)
        unindex(tables, job)
        if self.resets_attempts:
            job.attempt = 0
        if self.resets_priority:
            job.priority = Priority.NORMAL
        shard = shard_of_queue(self.queue, tables.errands.shard_count)
        if shard == tables.errands.shard:
            job.queue = self.queue
            reindex(tables, job)
            arrive(tables, job, data)
        else:
            extras.was_at = tuple(dict.fromkeys((*extras.was_at, tables.errands.shard)))
            self._send(tables, job, shard, data)

    def _send(self, tables: Tables, job: Job, shard: int, data: bytes) -> None:
        errors = tables.errors_of(job)
        watchers = []
        if job.extras is not None and job.extras.is_watched:  # watchers of an ended job are told by this shard
            prefix = keys.watchers(job.id)
            watchers = [key for key, _ in tables.overlay.scan(prefix, keys.prefix_end(prefix))]
        for key in watchers:
            tables.put(key, None)
        tables.drop_job(job)
        job.queue = self.queue
        job.position = 0  # it was a position on this shard
        tables.errands.send(shard, MoveIn(job, errors, [keys.second_name(key) for key in watchers], data))
        tables.forward(job.id, shard)


def _plan(context: PlanContext, body: MoveBody, job_id: str) -> Plan:
    move = Move(context.mint.claim_id(), job_id, body.queue, body.reset_attempts, not body.keep_priority)
    return plan_action(context, job_id, move, "moved")


ENDPOINTS = (
    Endpoint(
        name="move",
        access="jobs:move",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/move",
        summary="Move a job that is not active to another queue; it keeps its id",
        body=MoveBody,
        example={"queue": "emails.slow"},
        answers={200: Done},
        refusals=REFUSALS,
        plan=_plan,
    ),
)
