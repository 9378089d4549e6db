"""ActOnJobs: one action on many jobs of a shard, each allowed or refused as if it were the only one.

It is part of one slice of a bulk action. The shard remembers the jobs that it changed until the next slice, so a
repeated slice, from the same gateway or the next one, gets the same answer and changes nothing. A slice older than the
newest is refused: another gateway has taken over.

In addition each job remembers its newest actions, as with single actions.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Compound, Operation, Steps
from corvo.model.errors import Refusal, Refused
from corvo.model.job import Count, Job, SpanMs
from corvo.model.job_extras import bytes_of
from corvo.model.lifecycle import STATE_NAMES
from corvo.model.limits import CLAIMED_BYTES_MAX, JOBS_PER_REQUEST_MAX
from corvo.model.namespaces import namespace_of_id, shown_name
from corvo.model.reach import Reach
from corvo.model.sharding import unknown_job
from corvo.ops.jobs.approve import Approve
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.change_priority import ChangePriority
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.move import Move
from corvo.ops.jobs.reject import Reject
from corvo.ops.jobs.requeue import Requeue
from corvo.ops.jobs.retry import Retry
from corvo.rules.bulk import Action, Memo, Order, ask_id_of, find_memo, put_memo
from corvo.state.tables import Tables

_NEXT_TIME = Refused("OVERLOADED", "not reached: the jobs before it fill an entry; send the rest again", 1)


class ActOnJobs(Compound, tag=28):
    bulk_id: str
    step: Count  # number of the slice
    order: Order
    job_ids: Annotated[list[str], Meta(max_length=JOBS_PER_REQUEST_MAX)]
    kept_ms: SpanMs  # how long this shard remembers what it did

    result: ClassVar[Any] = list[Refused | None]

    def steps(self, tables: Tables) -> Steps[list[Refused | None]]:
        memo = find_memo(tables, self.bulk_id)
        if memo is not None and memo.step > self.step:
            raise Refusal("LEASE_LOST", f"slice {self.step} of {self.bulk_id}: this shard is at slice {memo.step}")
        done = set(memo.done) if memo is not None and memo.step == self.step else set()
        before = len(done)
        results = yield from self._act(tables, done)
        if len(done) > before:
            put_memo(tables, self.bulk_id, Memo(self.step, sorted(done), tables.now, self.kept_ms))
        return results

    def _act(self, tables: Tables, done: set[str]) -> Steps[list[Refused | None]]:
        results: list[Refused | None] = []
        room = CLAIMED_BYTES_MAX  # every job is written again or sent to another shard
        ask_id = ask_id_of(self.bulk_id)
        namespace = namespace_of_id(self.bulk_id)
        for job_id in self.job_ids:
            if job_id in done:
                results.append(None)
                continue
            if room <= 0:
                results.append(_NEXT_TIME)
                continue
            try:
                job = tables.require_job(job_id)
                room -= len(job.payload) + bytes_of(job.extras)
                _check(self.order, job, namespace)
                yield single(self.order, ask_id, job_id).apply
            except Refusal as refusal:
                results.append(refusal.to_refused())
                continue
            done.add(job_id)
            results.append(None)
        return results


def _check(order: Order, job: Job, namespace: str) -> None:
    """A job beyond the reach of the one who ordered it is refused like one that does not exist."""
    if not Reach(namespace, order.scope).holds(job.queue):
        raise unknown_job(job.id)
    if order.only_states and job.state not in order.only_states:
        raise Refusal("WRONG_STATE", f"the job is now {STATE_NAMES[job.state]} and no longer matches")
    if order.only_queue and job.queue != order.only_queue:
        raise Refusal("WRONG_STATE", f"the job is now in queue {shown_name(job.queue)} and no longer matches")


def single(order: Order, ask_id: int, job_id: str) -> Operation:
    """The operation for one job."""
    match order.action:
        case Action.RETRY:
            return Retry(ask_id, job_id)
        case Action.REQUEUE:
            return Requeue(ask_id, job_id)
        case Action.DELETE:
            return Delete(job_id)
        case Action.CANCEL:
            return Cancel(ask_id, job_id, order.grace_ms)
        case Action.MOVE:
            assert order.queue is not None
            return Move(ask_id, job_id, order.queue, order.resets_attempts, order.resets_priority)
        case Action.CHANGE_PRIORITY:
            return ChangePriority(job_id, order.priority, ask_id)
        case Action.HOLD:
            return Hold(ask_id, job_id, order.reason)
        case Action.APPROVE:
            return Approve(ask_id, job_id)
        case Action.REJECT:
            return Reject(ask_id, job_id, order.reason)
