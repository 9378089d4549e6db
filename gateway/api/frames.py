"""The frames of the stream: what a client may ask in one, how it becomes operations, what is answered.

Pure. Enqueues, acks, fails and heartbeats of a frame are grouped by shard, one operation each, and applied before its
fetch. An item that is refused is answered in its place; the others of the frame are not touched by it. New jobs that
belong to a batch or wait for others are planned apart, as a request over HTTP would be.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from corvo.endpoint import Answer, Body, Operation, Plan, PlanContext, gather, spread
from corvo.model.errors import Refusal, Refused
from corvo.model.job import QueueName, ShortText, WorkerId
from corvo.model.limits import (
    FETCH_COUNT_MAX,
    HEARTBEAT_JOBS_MAX,
    JOBS_PER_REQUEST_MAX,
    LEASE_MS_DEFAULT,
    LEASE_MS_MAX,
    LEASE_MS_MIN,
    POLL_MS_MAX,
    QUEUES_PER_FETCH_MAX,
)
from corvo.model.sharding import find_shard_of_job, shard_of_queue
from corvo.ops.jobs.ack import Ack, AckBatchItem, AckOutcome, ack_item, ack_outcome
from corvo.ops.jobs.enqueue import Enqueue, EnqueueBody, Enqueued, enqueued, new_job, plan_jobs
from corvo.ops.jobs.fail import Fail, FailBatchItem, FailOutcome, fail_item, fail_outcome
from corvo.ops.jobs.fetch import Fetch, FetchedJob, FetchOptions, weights_of
from corvo.ops.jobs.heartbeat import (
    Heartbeat,
    HeartbeatJob,
    HeartbeatStatus,
    new_beat,
    pulse_status,
    unknown_pulse,
)
from corvo.ops.jobs.lease import stranger
from corvo.rules.job_creation import NewJob


class FrameFetch(FetchOptions):
    queues: Annotated[list[QueueName], Meta(min_length=1, max_length=QUEUES_PER_FETCH_MAX)]
    worker_id: WorkerId
    hostname: ShortText = ""
    count: Annotated[int, Meta(ge=1, le=FETCH_COUNT_MAX)] = 1
    wait_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 0
    lease_duration: Annotated[float, Meta(ge=LEASE_MS_MIN / 1000, le=LEASE_MS_MAX / 1000)] = LEASE_MS_DEFAULT / 1000


class Frame(Body):
    id: int | str
    enqueue: Annotated[list[EnqueueBody], Meta(max_length=JOBS_PER_REQUEST_MAX)] | UnsetType = UNSET
    ack: Annotated[list[AckBatchItem], Meta(max_length=FETCH_COUNT_MAX)] | UnsetType = UNSET
    fail: Annotated[list[FailBatchItem], Meta(max_length=FETCH_COUNT_MAX)] | UnsetType = UNSET
    heartbeat: Annotated[dict[str, HeartbeatJob], Meta(max_length=HEARTBEAT_JOBS_MAX)] | UnsetType = UNSET
    fetch: FrameFetch | UnsetType = UNSET


class EnqueueOutcome(msgspec.Struct, omit_defaults=True):
    """The job, or why there is none."""

    job_id: str | None = None
    status: str | None = None
    unique_existing: bool | None = None
    error: str | None = None
    code: str | None = None


class FrameAnswer(msgspec.Struct):
    """What the frame asked for is there, nothing else."""

    id: int | str
    enqueued: list[EnqueueOutcome] | UnsetType = UNSET
    acked: list[AckOutcome] | UnsetType = UNSET
    failed: list[FailOutcome] | UnsetType = UNSET
    heartbeat: dict[str, HeartbeatStatus] | UnsetType = UNSET
    jobs: list[FetchedJob] | UnsetType = UNSET


class FrameRefused(msgspec.Struct, omit_defaults=True):
    """A frame that was not served. `id` is null where it could not be read."""

    id: int | str | None
    code: str
    error: str = ""
    retry_after_ms: int = 0


class FramePlan:
    """The operations of one frame, and how their results become its answer."""

    def __init__(self, context: PlanContext, frame: Frame) -> None:
        self._frame = frame
        self.calls: list[tuple[int, Operation]] = []
        self.apart: list[Plan] = []  # for new jobs that take more than one question
        self._apart: list[list[int]] = []  # the numbers of these jobs
        self._enqueued: list[NewJob | Refusal] = []
        self._groups: list[dict[int, list[int]]] = []
        ask_id = context.mint.claim_id()
        count = context.shard_count
        if frame.enqueue is not UNSET:
            self._enqueued = [_new_job(context, body, f"enqueue[{n}].") for n, body in enumerate(frame.enqueue)]
            special = self._set_apart(context, frame.enqueue)
            self._add(
                self._enqueued,
                lambda new: None if isinstance(new, Refusal) or new.id in special else shard_of_queue(new.queue, count),
                lambda items: Enqueue(items),
            )
        if frame.ack is not UNSET:
            acks = [ack_item(ack.job_id, ack, f"ack[{n}].") for n, ack in enumerate(frame.ack)]
            self._add(acks, lambda ack: find_shard_of_job(ack.job_id, count), lambda items: Ack(ask_id, items))
        if frame.fail is not UNSET:
            fails = [fail_item(fail.job_id, fail) for fail in frame.fail]
            self._add(fails, lambda fail: find_shard_of_job(fail.job_id, count), lambda items: Fail(ask_id, items))
        if frame.heartbeat is not UNSET:
            self._beats = [new_beat(job_id, job) for job_id, job in frame.heartbeat.items()]
            self._add(self._beats, lambda beat: find_shard_of_job(beat.job_id, count), lambda items: Heartbeat(items))

    def _add(self, items: list[Any], shard_of: Any, operation: Any) -> None:
        groups = spread(items, shard_of)
        self._groups.append(groups)
        self.calls += [(shard, operation([items[n] for n in numbers])) for shard, numbers in groups.items()]

    def _set_apart(self, context: PlanContext, bodies: list[EnqueueBody]) -> set[str]:
        """Plan for jobs of a batch, a plan for each batch, and for jobs that wait for others, a plan for each job. The
        ids of all of them."""
        groups: dict[str | int, list[int]] = {}
        for number, body in enumerate(bodies):
            if not body.is_plain and not isinstance(self._enqueued[number], Refusal):
                groups.setdefault(number if body.depends_on else body.batch_id or "", []).append(number)
        ids: set[str] = set()
        for numbers in groups.values():
            new = [one for number in numbers if isinstance(one := self._enqueued[number], NewJob)]
            places = [f"enqueue[{number}]." for number in numbers]
            try:
                plan = plan_jobs(context, new, places, bodies[numbers[0]].batch_id, lambda made: Answer(200, made))
            except Refusal as refusal:
                for number in numbers:
                    self._enqueued[number] = refusal
                continue
            ids.update(one.id for one in new)
            self.apart.append(plan)
            self._apart.append(numbers)
        return ids

    def fetch(self, context: PlanContext) -> Fetch | None:
        asked = self._frame.fetch
        if asked is UNSET:
            return None
        queues = list(dict.fromkeys(asked.queues))
        return Fetch(
            queues=queues,
            worker_id=asked.worker_id,
            hostname=asked.hostname,
            claim_id=context.mint.claim_id(),
            count=asked.count,
            lease_ms=round(asked.lease_duration * 1000),
            wait_ms=min(asked.wait_ms, POLL_MS_MAX),
            weights=weights_of(asked, queues),
            is_two_phase=asked.two_phase,
            pool_size=asked.pool_size,
            version=asked.version,
        )

    def conclude(self, results: list[Any], apart: list[Any], jobs: list[FetchedJob] | None) -> FrameAnswer:
        """`results` are those of `calls`, `apart` the answers to the plans; a refusal stands where there is none."""
        frame = self._frame
        answer = FrameAnswer(frame.id)
        rest = iter(results)
        groups = iter(self._groups)
        if frame.enqueue is not UNSET:
            outcomes = self._gathered(next(groups), rest, self._enqueued)
            for numbers, answer_apart in zip(self._apart, apart, strict=True):
                for place, number in enumerate(numbers):
                    outcomes[number] = _of_one(answer_apart, place)
            answer.enqueued = [
                _enqueue_outcome(new, outcome) for new, outcome in zip(self._enqueued, outcomes, strict=True)
            ]
        if frame.ack is not UNSET:
            strangers = [stranger(ack.job_id) for ack in frame.ack]
            answer.acked = [ack_outcome(_refused(one)) for one in self._gathered(next(groups), rest, strangers)]
        if frame.fail is not UNSET:
            strangers = [stranger(fail.job_id) for fail in frame.fail]
            answer.failed = [fail_outcome(_refused(one)) for one in self._gathered(next(groups), rest, strangers)]
        if frame.heartbeat is not UNSET:
            pulses = self._gathered(next(groups), rest, [unknown_pulse(beat) for beat in self._beats])
            answer.heartbeat = {
                beat.job_id: pulse_status(_refused(pulse)) for beat, pulse in zip(self._beats, pulses, strict=True)
            }
        if jobs is not None:
            answer.jobs = jobs
        return answer

    @staticmethod
    def _gathered(groups: dict[int, list[int]], rest: Any, unasked: list[Any]) -> list[Any]:
        parts = []
        for numbers in groups.values():
            part = next(rest)
            parts.append([part] * len(numbers) if isinstance(part, Refusal) else part)
        return gather(unasked, groups, parts)


def _new_job(context: PlanContext, body: EnqueueBody, at: str) -> NewJob | Refusal:
    try:
        return new_job(context, body, shard_of_queue(body.queue, context.shard_count), at)
    except Refusal as refusal:
        return refusal


def _enqueue_outcome(new: NewJob | Refusal, outcome: Any) -> EnqueueOutcome:
    if isinstance(outcome, Refusal):
        return EnqueueOutcome(error=outcome.message, code=outcome.code)
    assert isinstance(new, NewJob)
    made = outcome if isinstance(outcome, Enqueued) else enqueued(new, outcome)
    return EnqueueOutcome(made.job_id, made.status, made.unique_existing)


def _of_one(outcome: Any, place: int) -> Enqueued | Refusal:
    """A job's part of the answer to its plan."""
    if isinstance(outcome, Answer):
        made: Enqueued = outcome.body[place]
        return made
    if isinstance(outcome, Refusal):
        return outcome
    raise outcome  # a fault of ours


def _refused(outcome: Any) -> Any:
    """A shard's refusal as an item's."""
    return Refused(outcome.code, outcome.message) if isinstance(outcome, Refusal) else outcome
