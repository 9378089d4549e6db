"""Fetch: a worker claims pending jobs under a lease.

Queues are served in the given order, or in a random order by weight; within a queue critical before high before normal,
and first in, first out. A queue that is paused or at a limit is skipped. A claim counts as an attempt at once, so a job
that kills its workers runs out of attempts. A fetch without a job to claim waits at admission (`shards/intake`) and
never enters the log.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import Body, Endpoint, Operation
from corvo.model import weighted_order
from corvo.model.errors import invalid
from corvo.model.job import (
    Controls,
    Count,
    Job,
    Priority,
    Queue,
    QueueName,
    RequestId,
    ShortText,
    SpanMs,
    Worker,
    WorkerId,
)
from corvo.model.job_extras import JobExtras
from corvo.model.json_input import to_raw
from corvo.model.lifecycle import Verb
from corvo.model.limits import (
    CLAIMED_BYTES_MAX,
    ERRORS_KEPT_PER_JOB,
    FETCH_COUNT_MAX,
    LEASE_MS_DEFAULT,
    LEASE_MS_MAX,
    LEASE_MS_MIN,
    POLL_MS_DEFAULT,
    POLL_MS_MAX,
    POOL_SIZE_MAX,
    QUEUES_PER_FETCH_MAX,
    WEIGHT_MAX,
)
from corvo.model.namespaces import shown_name
from corvo.state import locks
from corvo.state.claim_limits import GATE_ALARM
from corvo.state.pending import is_waiting
from corvo.state.tables import Tables
from corvo.state.transitions import change

_BY_PRIORITY = tuple(Priority)
_CLAIM = Verb.CLAIM  # a member lookup on an enum is a call, and this is a hot path
WORKER_SEEN_EVERY_NS = 5_000_000_000  # a busy worker's record is written at most this often
WORKER_ALARM = "w"  # followed by a worker: check whether it is still seen

Weight = Annotated[int, Meta(ge=1, le=WEIGHT_MAX)]


class FetchOptions(Body, kw_only=True):
    """Optional fields of a fetch. Most fetches have none of them."""

    strategy: Annotated[
        Literal["strict", "weighted"],
        Meta(description="`strict`: queues in the given order; `weighted`: in a random order by weight"),
    ] = "strict"
    weights: Annotated[
        dict[QueueName, Weight],
        Meta(max_length=QUEUES_PER_FETCH_MAX, description="by queue, for `weighted`; default 1"),
    ] = {}
    two_phase: Annotated[
        bool, Meta(description="the job counts as started with its first heartbeat, not with the claim")
    ] = False
    pool_size: Annotated[int, Meta(ge=0, le=POOL_SIZE_MAX, description="jobs that the worker can run at a time")] = 0
    version: Annotated[ShortText, Meta(description="of the worker's program")] = ""


class FetchBody(FetchOptions):
    queues: Annotated[list[QueueName], Meta(min_length=1, max_length=QUEUES_PER_FETCH_MAX)]
    worker_id: WorkerId
    hostname: ShortText = ""
    timeout: Annotated[
        float, Meta(ge=0, le=3600, description="seconds to wait for a job; more than 60 count as 60")
    ] = POLL_MS_DEFAULT / 1000
    lease_duration: Annotated[
        float,
        Meta(
            ge=LEASE_MS_MIN / 1000,
            le=LEASE_MS_MAX / 1000,
            description="seconds until the lease expires without a heartbeat",
        ),
    ] = LEASE_MS_DEFAULT / 1000


class FetchBatchBody(FetchBody):
    count: Annotated[int, Meta(ge=1, le=FETCH_COUNT_MAX)] = 1


class FetchedJob(msgspec.Struct, omit_defaults=True):
    job_id: str
    queue: str
    payload: Any
    attempt: int
    max_retries: int
    lease_duration: float
    lease_token: int
    checkpoint: Any = None
    tags: Any = None


class FetchedBatch(msgspec.Struct):
    jobs: list[FetchedJob]


class Claimed(msgspec.Struct, array_like=True, gc=False):
    job_id: str
    queue: str
    payload: bytes
    attempt: int
    max_retries: int
    lease_ms: int
    lease_token: int
    checkpoint: bytes
    tags: bytes


class Fetch(Operation, tag=2):
    queues: list[str]
    worker_id: str
    hostname: str
    claim_id: RequestId  # identifies this fetch: repeated after a crash, it returns the jobs that it claimed
    count: Count = 1
    lease_ms: SpanMs = LEASE_MS_DEFAULT
    wait_ms: SpanMs = 0  # used at admission, not by `apply`
    is_repeated: bool = False
    weights: list[Weight] = []  # of the queues, in their order; empty: strict order
    is_two_phase: bool = False
    pool_size: Count = 0
    version: str = ""
    is_after_operations: bool = False  # of the same frame, sent just before it; used at admission
    all_queues: list[str] = []  # when `queues` are those of one shard: all queues of the request

    result: ClassVar[Any] = list[Claimed]

    def apply(self, tables: Tables) -> list[Claimed]:
        if self.is_repeated:
            held = tables.leases.claimed_by(self.claim_id)
            if held:
                return [_claimed(tables.require_job(job_id)) for job_id in held]
        claimed: list[Claimed] = []
        room = CLAIMED_BYTES_MAX
        if self.weights:
            self._take_turns(tables, claimed, room)
        else:
            for name in self.queues:
                queue = tables.find_queue(name)
                if queue is not None and queue.counts[0]:
                    room = self._claim_from(tables, queue, claimed, room, self.count)
                    if len(claimed) >= self.count or room <= 0:
                        break
        if claimed:
            _see(tables, self)
        return claimed

    def _take_turns(self, tables: Tables, claimed: list[Claimed], room: int) -> None:
        """One job at a time, each from a queue drawn by weight among those that have a job."""
        known = [(tables.find_queue(name), weight) for name, weight in zip(self.queues, self.weights, strict=False)]
        queues = [(queue, weight) for queue, weight in known if queue is not None]
        while queues and len(claimed) < self.count and room > 0:
            place = weighted_order.draw([weight for _, weight in queues], self.claim_id + len(claimed) + len(queues))
            before = len(claimed)
            room = self._claim_from(tables, queues[place][0], claimed, room, before + 1)
            if len(claimed) == before:
                del queues[place]

    def _claim_from(self, tables: Tables, queue: Queue, claimed: list[Claimed], room: int, count: int) -> int:
        """Claims jobs until the count is reached, the answer is full or the queue is at a limit. Returns the bytes
        left."""
        now = tables.now
        before = len(claimed)
        enough = min(count, before + tables.claimable(queue.name))
        for priority in _BY_PRIORITY:
            while len(claimed) < enough and room > 0:
                first = tables.pending.pop(queue, priority)
                if first is None:
                    break
                position, job_id = first
                job = tables.find_job(job_id)
                if job is None or not is_waiting(job, position):
                    continue
                job.attempt += 1
                job.lease_token += 1
                job.claim_id = self.claim_id
                job.lease_ms = self.lease_ms
                job.lease_expires_at = now + self.lease_ms * 1_000_000
                job.started_at = now
                job.worker_id = self.worker_id
                job.hostname = self.hostname
                queue.cursors[priority] = position
                if job.lease_token > ERRORS_KEPT_PER_JOB:
                    tables.forget_error(job_id, job.lease_token - ERRORS_KEPT_PER_JOB)
                if job.extras is not None or self.is_two_phase:
                    self._begin(tables, job)
                change(tables, job, _CLAIM)
                claimed.append(_claimed(job))
                room -= len(job.payload) + len(job.checkpoint)
        if queue.controls is not None and len(claimed) > before:
            pass_gate(tables, queue, queue.controls, len(claimed) - before)
        return room

    def _begin(self, tables: Tables, job: Job) -> None:
        extras = job.extras = job.extras or JobExtras()
        locks.unlock(tables, job, is_start=True)
        extras.cancel_at = extras.claimed_at = 0
        if self.is_two_phase:
            extras.claimed_at, job.started_at = job.started_at, 0


def pass_gate(tables: Tables, queue: Queue, controls: Controls, count: int) -> None:
    """Count claims of a queue with controls. If its throttle is full now, an alarm wakes waiting fetches later."""
    if not controls.rate:
        return
    tables.throttles.claim(queue.name, controls, tables.now, count)
    await_room(tables, queue, controls)


def await_room(tables: Tables, queue: Queue, controls: Controls) -> None:
    if not tables.throttles.room(queue.name, controls, tables.now):
        tables.alarms.add(tables.throttles.free_at(queue.name, controls), GATE_ALARM + queue.name)


def _claimed(job: Job) -> Claimed:
    return Claimed(
        job.id,
        job.queue,
        job.payload,
        job.attempt,
        job.max_retries,
        job.lease_ms,
        job.lease_token,
        job.checkpoint,
        job.tags,
    )


def _see(tables: Tables, fetch: Fetch) -> None:
    """Update the worker's record, but not for each of a thousand fetches a second."""
    worker = tables.find_worker(fetch.worker_id)
    now = tables.now
    queues = fetch.all_queues or fetch.queues
    if worker is None:
        tables.put_worker(Worker(fetch.worker_id, fetch.hostname, queues, now, now, fetch.pool_size, fetch.version))
        tables.alarms.add(now + tables.worker_timeout_ms * 1_000_000, WORKER_ALARM + fetch.worker_id)
        return
    pool_size, version = fetch.pool_size or worker.pool_size, fetch.version or worker.version  # not in every request
    if (
        now - worker.last_seen_at >= WORKER_SEEN_EVERY_NS
        or worker.queues != queues
        or worker.hostname != fetch.hostname
        or worker.pool_size != pool_size
        or worker.version != version
    ):
        tables.put_worker(Worker(worker.id, fetch.hostname, queues, worker.started_at, now, pool_size, version))


def fetched_job(claimed: Claimed) -> FetchedJob:
    return FetchedJob(
        claimed.job_id,
        shown_name(claimed.queue),
        msgspec.Raw(claimed.payload),
        claimed.attempt,
        claimed.max_retries,
        # Whole seconds stay whole numbers: published clients parse them as integers.
        claimed.lease_ms // 1000 if claimed.lease_ms % 1000 == 0 else claimed.lease_ms / 1000,
        claimed.lease_token,
        to_raw(claimed.checkpoint),
        to_raw(claimed.tags),
    )


def new_fetch(body: FetchBody, claim_id: int, count: int) -> Fetch:
    queues = list(dict.fromkeys(body.queues))
    return Fetch(
        queues=queues,
        worker_id=body.worker_id,
        hostname=body.hostname,
        claim_id=claim_id,
        count=count,
        lease_ms=round(body.lease_duration * 1000),
        wait_ms=min(round(body.timeout * 1000), POLL_MS_MAX),
        weights=weights_of(body, queues),
        is_two_phase=body.two_phase,
        pool_size=body.pool_size,
        version=body.version,
    )


def weights_of(wishes: FetchOptions, queues: list[str]) -> list[int]:
    """Weights in the order of the queues; empty for a strict fetch or a single queue."""
    if wishes.strategy == "strict":
        if wishes.weights:
            raise invalid("weights", 'weights need "strategy": "weighted"')
        return []
    if strangers := wishes.weights.keys() - queues:
        raise invalid("weights", f"{shown_name(min(strangers))} is not among the queues of this fetch")
    return [wishes.weights.get(queue, 1) for queue in queues] if len(queues) > 1 else []


ENDPOINTS = (
    Endpoint(
        name="fetch",
        access="jobs:fetch",
        method="POST",
        repeats="by key",
        path="/fetch",
        summary="Claim one job, waiting if there is none",
        body=FetchBody,
        example={"queues": ["emails.send"], "worker_id": "w1", "timeout": 0},
        answers={200: FetchedJob, 204: None},
    ),
    Endpoint(
        name="fetch_batch",
        access="jobs:fetch",
        method="POST",
        repeats="by key",
        path="/fetch/batch",
        summary="Claim up to `count` jobs, waiting until there is at least one",
        body=FetchBatchBody,
        example={"queues": ["emails.send"], "worker_id": "w1", "timeout": 0, "count": 2},
        answers={200: FetchedBatch},
    ),
)
