"""Fetch: a worker claims pending jobs under a lease.

Queues are served in the order they are named; within a queue critical before high before normal, and first in, first
out. A claim counts as an attempt the moment it is made, so a job that kills its workers runs out of attempts too.
Waiting is no business of the machine's: an empty fetch is parked at the door and never enters the log.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.job import Count, Job, Priority, Queue, QueueName, RequestId, ShortText, SpanMs, Worker, WorkerId
from corvo.json_edge import to_raw
from corvo.lifecycle import Verb
from corvo.limits import (
    CLAIMED_BYTES_MAX,
    FETCH_COUNT_MAX,
    LEASE_MS_DEFAULT,
    LEASE_MS_MAX,
    LEASE_MS_MIN,
    POLL_MS_DEFAULT,
    POLL_MS_MAX,
    QUEUES_PER_FETCH_MAX,
)
from corvo.ops.operation import Body, Endpoint, Operation
from corvo.state.effects import change
from corvo.state.pending import is_waiting
from corvo.state.tables import Tables

_BY_PRIORITY = tuple(Priority)
WORKER_SEEN_EVERY_NS = 5_000_000_000  # a busy worker's record is rewritten at most this often


class FetchBody(Body):
    queues: Annotated[list[QueueName], Meta(min_length=1, max_length=QUEUES_PER_FETCH_MAX)]
    worker_id: WorkerId
    hostname: ShortText = ""
    timeout: Annotated[float, Meta(ge=0, le=3600, description="seconds to wait for a job, at most 60 are used")] = (
        POLL_MS_DEFAULT / 1000
    )
    lease_duration: Annotated[
        float, Meta(ge=LEASE_MS_MIN / 1000, le=LEASE_MS_MAX / 1000, description="seconds until the claim lapses")
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
    claim_id: RequestId  # names this fetch: repeated after a crash, it finds what it claimed instead of claiming more
    count: Count = 1
    lease_ms: SpanMs = LEASE_MS_DEFAULT
    wait_ms: SpanMs = 0  # read by the door, not by the machine
    is_repeated: bool = False

    result: ClassVar[Any] = list[Claimed]

    def apply(self, tables: Tables) -> list[Claimed]:
        if self.is_repeated:
            held = tables.leases.claimed_by(self.claim_id)
            if held:
                return [_claimed(tables.require_job(job_id)) for job_id in held]
        claimed: list[Claimed] = []
        room = CLAIMED_BYTES_MAX
        for name in self.queues:
            queue = tables.find_queue(name)
            if queue is not None and queue.counts[0]:
                room = self._claim_from(tables, queue, claimed, room)
                if len(claimed) >= self.count or room <= 0:
                    break
        if claimed:
            _see(tables, self)
        return claimed

    def _claim_from(self, tables: Tables, queue: Queue, claimed: list[Claimed], room: int) -> int:
        """Claims until there are enough or the answer is full; the bytes that still fit into it."""
        now = tables.now
        for priority in _BY_PRIORITY:
            while len(claimed) < self.count and room > 0:
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
                change(tables, job, Verb.CLAIM)
                claimed.append(_claimed(job))
                room -= len(job.payload) + len(job.checkpoint)
        return room


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
    """Keep the worker's record, but do not rewrite it for each of its thousand fetches a second."""
    worker = tables.find_worker(fetch.worker_id)
    now = tables.now
    if worker is None:
        tables.put_worker(Worker(fetch.worker_id, fetch.hostname, fetch.queues, now, now))
    elif (
        now - worker.last_seen_at >= WORKER_SEEN_EVERY_NS
        or worker.queues != fetch.queues
        or worker.hostname != fetch.hostname
    ):
        tables.put_worker(Worker(worker.id, fetch.hostname, fetch.queues, worker.started_at, now))


def fetched_job(claimed: Claimed) -> FetchedJob:
    return FetchedJob(
        claimed.job_id,
        claimed.queue,
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
    return Fetch(
        queues=list(dict.fromkeys(body.queues)),
        worker_id=body.worker_id,
        hostname=body.hostname,
        claim_id=claim_id,
        count=count,
        lease_ms=round(body.lease_duration * 1000),
        wait_ms=min(round(body.timeout * 1000), POLL_MS_MAX),
    )


ENDPOINTS = (
    Endpoint(
        name="fetch",
        method="POST",
        path="/fetch",
        summary="Claim one job, waiting for it when there is none",
        body=FetchBody,
        answers={200: FetchedJob, 204: None},
    ),
    Endpoint(
        name="fetch_batch",
        method="POST",
        path="/fetch/batch",
        summary="Claim up to `count` jobs, waiting until there is at least one",
        body=FetchBatchBody,
        answers={200: FetchedBatch},
    ),
)
