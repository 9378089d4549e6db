"""Frames of the stream: their content, their operations and their answers. Pure.

Acks, fails, heartbeats and enqueues of a frame are grouped by shard, one operation each. A shard applies them in this
order, before the frame's fetch. So an enqueue can use a unique key that an ack freed, and a fetch can use its slot. A
refused item gets an error as its result; the other items are served. New jobs that belong to a batch or depend on other
jobs are planned separately, like HTTP requests.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from corvo.endpoint import Answer, Operation, Plan, PlanContext
from corvo.model.errors import Refusal, Refused
from corvo.model.job import QueueName, ShortText, WorkerId
from corvo.model.limits import (
    FETCH_COUNT_MAX,
    LEASE_MS_DEFAULT,
    LEASE_MS_MAX,
    LEASE_MS_MIN,
    POLL_MS_MAX,
    QUEUES_PER_FETCH_MAX,
)
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.ack import Ack, AckBatchItem, AckItem, AckOutcome, ack_item, ack_outcome
from corvo.ops.jobs.enqueue import Enqueue, EnqueueBody, Enqueued, enqueued, new_job, plan_jobs
from corvo.ops.jobs.fail import Fail, FailBatchItem, FailItem, FailOutcome, fail_item, fail_outcome
from corvo.ops.jobs.fetch import Fetch, FetchedJob, FetchOptions, weights_of
from corvo.ops.jobs.heartbeat import Beat, Heartbeat, HeartbeatJob, new_beat, pulse_status, unknown_pulse
from corvo.ops.jobs.lease import stranger
from corvo.rules.job_creation import NewJob


class FrameFetch(FetchOptions):
    queues: Annotated[list[QueueName], Meta(min_length=1, max_length=QUEUES_PER_FETCH_MAX)]
    worker_id: WorkerId
    hostname: ShortText = ""
    count: Annotated[int, Meta(ge=1, le=FETCH_COUNT_MAX)] = 1
    wait_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 0
    lease_duration: Annotated[float, Meta(ge=LEASE_MS_MIN / 1000, le=LEASE_MS_MAX / 1000)] = LEASE_MS_DEFAULT / 1000


class Frame(msgspec.Struct):
    """A decoded frame (`frame_input.py`). An invalid item is replaced by its refusal."""

    id: int | str
    enqueue: Sequence[EnqueueBody | Refusal] | UnsetType = UNSET
    ack: Sequence[AckBatchItem | Refusal] | UnsetType = UNSET
    fail: Sequence[FailBatchItem | Refusal] | UnsetType = UNSET
    heartbeat: Mapping[str, HeartbeatJob | Refusal] | UnsetType = UNSET
    fetch: FrameFetch | Refusal | UnsetType = UNSET


class EnqueueOutcome(msgspec.Struct, omit_defaults=True):
    """The job, or the error."""

    job_id: str | None = None
    status: str | None = None
    unique_existing: bool | None = None
    error: str | None = None
    code: str | None = None


class HeartbeatOutcome(msgspec.Struct, omit_defaults=True):
    """`status`, or the error."""

    status: str | None = None
    error: str | None = None
    code: str | None = None


class FrameAnswer(msgspec.Struct):
    """The results, only for the parts that the frame had. `code`, `error` and `retry_after_ms` belong to the fetch and
    replace `jobs`."""

    id: int | str
    enqueued: list[EnqueueOutcome] | UnsetType = UNSET
    acked: list[AckOutcome] | UnsetType = UNSET
    failed: list[FailOutcome] | UnsetType = UNSET
    heartbeat: dict[str, HeartbeatOutcome] | UnsetType = UNSET
    jobs: list[FetchedJob] | UnsetType = UNSET
    code: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    retry_after_ms: int | UnsetType = UNSET


class FrameRefused(msgspec.Struct, omit_defaults=True):
    """A frame that was refused as a whole. `id` is null only if it is unreadable."""

    id: int | str | None
    code: str
    error: str = ""
    retry_after_ms: int = 0


def items_of(frame: Frame) -> int:
    """Number of items, for the rate of their sender."""
    lists = (frame.enqueue, frame.ack, frame.fail, frame.heartbeat)
    items = sum(len(part) for part in lists if part is not UNSET)
    return items + (frame.fetch.count if isinstance(frame.fetch, FrameFetch) else 0)


class FramePlan:
    """The operations of one frame, and how their results become its answer."""

    def __init__(self, context: PlanContext, frame: Frame) -> None:
        self._frame = frame
        self.calls: list[tuple[int, Operation]] = []
        self.separate: list[Plan] = []  # for new jobs that need more than one call
        self._separate: list[list[int]] = []  # the positions of these jobs in the frame
        self._enqueues: list[NewJob | Refusal] = []
        self._acks: list[AckItem | Refusal] = []
        self._fails: list[FailItem | Refusal] = []
        self._beats: list[Beat | Refusal] = []
        self._groups: list[dict[int, list[int]]] = []
        self.fetch: Fetch | Refusal | None = None
        ask_id = context.mint.claim_id()
        count = context.shard_count
        find_shard = context.find_shard_of_job
        if frame.ack is not UNSET:
            self._acks = [_ack_item(ack, n) for n, ack in enumerate(frame.ack)]
            self._add(self._acks, lambda ack: find_shard(ack.job_id), lambda items: Ack(ask_id, items))
        if frame.fail is not UNSET:
            self._fails = [_fail_item(fail, n) for n, fail in enumerate(frame.fail)]
            self._add(self._fails, lambda fail: find_shard(fail.job_id), lambda items: Fail(ask_id, items))
        if frame.heartbeat is not UNSET:
            self._beats = [_beat(job_id, job) for job_id, job in frame.heartbeat.items()]
            self._add(self._beats, lambda beat: find_shard(beat.job_id), Heartbeat)
        if frame.enqueue is not UNSET:
            self._enqueues = [_new_job(context, body, n) for n, body in enumerate(frame.enqueue)]
            separate = self._plan_separately(context, frame.enqueue)
            self._add(
                self._enqueues,
                lambda new: None if new.id in separate else shard_of_queue(new.queue, count),
                lambda new: Enqueue(new, context.room(shard_of_queue(new[0].queue, count))),
            )
        if frame.fetch is not UNSET:
            self.fetch = _fetch(context, frame.fetch)

    def _add(self, items: list[Any], shard_of: Callable[[Any], int | None], operation: Callable[[Any], Any]) -> None:
        groups: dict[int, list[int]] = {}
        for number, item in enumerate(items):
            if type(item) is not Refusal:
                shard = shard_of(item)
                if shard is not None:
                    groups.setdefault(shard, []).append(number)
        self._groups.append(groups)
        self.calls += [(shard, operation([items[n] for n in numbers])) for shard, numbers in groups.items()]

    def _plan_separately(self, context: PlanContext, bodies: Sequence[EnqueueBody | Refusal]) -> set[str]:
        """Makes one plan for all jobs of a batch and one for each job with dependencies. Returns the ids of all."""
        groups: dict[str | int, list[int]] = {}
        for number, body in enumerate(bodies):
            if not isinstance(body, Refusal) and not body.is_plain and isinstance(self._enqueues[number], NewJob):
                groups.setdefault(number if body.depends_on else body.batch_id or "", []).append(number)
        ids: set[str] = set()
        for group, numbers in groups.items():
            new = [one for number in numbers if isinstance(one := self._enqueues[number], NewJob)]
            places = [f"enqueue[{number}]." for number in numbers]
            first = bodies[numbers[0]]
            assert isinstance(first, EnqueueBody), group
            try:
                plan = plan_jobs(context, new, places, first.batch_id, lambda made: Answer(200, made))
            except Refusal as refusal:
                for number in numbers:
                    self._enqueues[number] = refusal
                continue
            ids.update(one.id for one in new)
            self.separate.append(plan)
            self._separate.append(numbers)
        return ids

    def conclude(self, results: list[Any], separate: list[Any], jobs: list[FetchedJob] | Refusal | None) -> FrameAnswer:
        """`results` belong to `calls`, and `separate` to the plans; each may be a refusal."""
        frame = self._frame
        answer = FrameAnswer(frame.id)
        rest = iter(results)
        groups = iter(self._groups)
        if frame.ack is not UNSET:
            outcomes = _gathered(self._acks, next(groups), rest, lambda ack: stranger(ack.job_id))
            answer.acked = [ack_outcome(_refused(one)) for one in outcomes]
        if frame.fail is not UNSET:
            outcomes = _gathered(self._fails, next(groups), rest, lambda fail: stranger(fail.job_id))
            answer.failed = [fail_outcome(_refused(one)) for one in outcomes]
        if frame.heartbeat is not UNSET:
            outcomes = _gathered(self._beats, next(groups), rest, unknown_pulse)
            answer.heartbeat = {
                job_id: _heartbeat_outcome(beat, outcome)
                for job_id, beat, outcome in zip(frame.heartbeat, self._beats, outcomes, strict=True)
            }
        if frame.enqueue is not UNSET:
            outcomes = _gathered(self._enqueues, next(groups), rest, lambda new: None)
            for numbers, of_plan in zip(self._separate, separate, strict=True):
                for place, number in enumerate(numbers):
                    outcomes[number] = _of_one(of_plan, place)
            answer.enqueued = [
                _enqueue_outcome(new, outcome) for new, outcome in zip(self._enqueues, outcomes, strict=True)
            ]
        if isinstance(jobs, Refusal):
            answer.code, answer.error = jobs.code, jobs.message
            if jobs.retry_after_ms:
                answer.retry_after_ms = jobs.retry_after_ms
        elif jobs is not None:
            answer.jobs = jobs
        return answer


def _gathered(
    items: list[Any], groups: dict[int, list[int]], rest: Iterator[Any], unasked: Callable[[Any], Any]
) -> list[Any]:
    """Outcomes in the order of the items: the shard's result, the item's own refusal, or `unasked(item)` if no shard
    got the item."""
    outcomes = list(items)
    left = len(items)
    for numbers in groups.values():
        part = next(rest)
        results = [part] * len(numbers) if isinstance(part, Refusal) else part
        for number, result in zip(numbers, results, strict=True):
            outcomes[number] = result
        left -= len(numbers)
    if left:
        asked = {number for numbers in groups.values() for number in numbers}
        for number, item in enumerate(items):
            if number not in asked and not isinstance(item, Refusal):
                outcomes[number] = unasked(item)
    return outcomes


def _new_job(context: PlanContext, body: EnqueueBody | Refusal, number: int) -> NewJob | Refusal:
    if isinstance(body, Refusal):
        return body
    try:
        return new_job(context, body, shard_of_queue(body.queue, context.shard_count), f"enqueue[{number}].")
    except Refusal as refusal:
        return refusal


def _ack_item(ack: AckBatchItem | Refusal, number: int) -> AckItem | Refusal:
    if isinstance(ack, Refusal):
        return ack
    try:
        return ack_item(ack.job_id, ack, f"ack[{number}].")
    except Refusal as refusal:
        return refusal


def _fail_item(fail: FailBatchItem | Refusal, number: int) -> FailItem | Refusal:
    if isinstance(fail, Refusal):
        return fail
    try:
        return fail_item(fail.job_id, fail, f"fail[{number}].")
    except Refusal as refusal:
        return refusal


def _beat(job_id: str, job: HeartbeatJob | Refusal) -> Beat | Refusal:
    if isinstance(job, Refusal):
        return job
    try:
        return new_beat(job_id, job, "heartbeat")
    except Refusal as refusal:
        return refusal


def _fetch(context: PlanContext, asked: FrameFetch | Refusal) -> Fetch | Refusal:
    if isinstance(asked, Refusal):
        return asked
    queues = list(dict.fromkeys(asked.queues))
    try:
        weights = weights_of(asked, queues)
    except Refusal as refusal:
        return Refusal(refusal.code, f"fetch.{refusal.message}", f"fetch.{refusal.field}")
    return Fetch(
        queues=queues,
        worker_id=asked.worker_id,
        hostname=asked.hostname,
        claim_id=context.mint.claim_id(),
        count=asked.count,
        lease_ms=round(asked.lease_duration * 1000),
        wait_ms=min(asked.wait_ms, POLL_MS_MAX),
        weights=weights,
        is_two_phase=asked.two_phase,
        pool_size=asked.pool_size,
        version=asked.version,
    )


def _enqueue_outcome(new: NewJob | Refusal, outcome: Any) -> EnqueueOutcome:
    if isinstance(outcome, Refusal):
        return EnqueueOutcome(error=outcome.message, code=outcome.code)
    assert isinstance(new, NewJob)
    made = outcome if isinstance(outcome, Enqueued) else enqueued(new, outcome)
    return EnqueueOutcome(made.job_id, made.status, made.unique_existing)


def _heartbeat_outcome(beat: Beat | Refusal, outcome: Any) -> HeartbeatOutcome:
    if isinstance(beat, Refusal):
        return HeartbeatOutcome(error=beat.message, code=beat.code)
    return HeartbeatOutcome(pulse_status(_refused(outcome)).status)


def _of_one(outcome: Any, place: int) -> Enqueued | Refusal:
    """One job's part of its plan's answer."""
    if isinstance(outcome, Answer):
        made: Enqueued = outcome.body[place]
        return made
    if isinstance(outcome, Refusal):
        return outcome
    raise outcome  # a bug


def _refused(outcome: Any) -> Any:
    """Turns a shard's refusal into an item's error."""
    return Refused(outcome.code, outcome.message) if isinstance(outcome, Refusal) else outcome
