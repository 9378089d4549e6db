"""Heartbeat: a worker renews its leases and reports progress.

The lease is renewed by its original duration. The answer tells the worker to stop: `cancel` for a job that was
cancelled, held, deleted or has expired, `lease_lost` for a job that another worker has claimed. For a worker that
claims ahead, the first heartbeat of a job means that it has started.
"""

from enum import IntEnum
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext, gather, spread
from corvo.model.errors import Refused
from corvo.model.events import EventKind
from corvo.model.job import Count
from corvo.model.json_input import no_document, object_document
from corvo.model.lifecycle import State
from corvo.model.limits import HEARTBEAT_JOBS_MAX, PROGRESS_TOLD_BYTES_MAX
from corvo.model.name_fields import NameKind
from corvo.ops.jobs.ack import LeaseToken
from corvo.ops.jobs.fetch import WORKER_SEEN_EVERY_NS
from corvo.ops.jobs.lease import holds, lost
from corvo.rules.expiry import expire
from corvo.state.tables import Tables
from corvo.state.transitions import renew

CALLED_OFF = frozenset({State.CANCELLED, State.HELD})


class Pulse(IntEnum):
    OK = 0
    CANCEL = 1
    LEASE_LOST = 2


class HeartbeatJob(Body):
    progress: msgspec.Raw = msgspec.field(default_factory=no_document)
    checkpoint: msgspec.Raw = msgspec.field(default_factory=no_document)
    lease_token: LeaseToken | None = None


class HeartbeatBody(Body):
    jobs: Annotated[dict[Annotated[str, NameKind.ID], HeartbeatJob], Meta(min_length=1, max_length=HEARTBEAT_JOBS_MAX)]


class HeartbeatStatus(msgspec.Struct):
    status: str


class HeartbeatAnswer(msgspec.Struct):
    jobs: dict[str, HeartbeatStatus]


class Beat(msgspec.Struct, array_like=True, gc=False):
    job_id: str
    lease_token: Count = 0
    progress: bytes = b""
    checkpoint: bytes = b""


class Heartbeat(Operation, tag=5):
    beats: list[Beat]

    result: ClassVar[Any] = list[Pulse | Refused]

    def apply(self, tables: Tables) -> list[Pulse | Refused]:
        return [_beat(tables, beat) for beat in self.beats]


def _beat(tables: Tables, beat: Beat) -> Pulse | Refused:
    job = tables.find_job(beat.job_id)
    if job is None:
        missing = lost(tables, None, beat.job_id, beat.lease_token)
        return Pulse.CANCEL if missing.code == "JOB_NOT_FOUND" else missing
    if not holds(job, beat.lease_token):
        is_newest = beat.lease_token in (0, job.lease_token)
        return Pulse.CANCEL if job.state in CALLED_OFF and is_newest else unknown_pulse(beat)
    if job.extras is not None and 0 < job.extras.expire_at <= tables.now:
        expire(tables, job.id)
        return Pulse.CANCEL
    if beat.progress and beat.progress != job.progress:  # a repeated heartbeat sends no second event
        job.progress = beat.progress
        told = beat.progress if len(beat.progress) <= PROGRESS_TOLD_BYTES_MAX else b""
        tables.event_log.tell(EventKind.PROGRESS, job.id, job.queue, told)
    if beat.checkpoint:
        job.checkpoint = beat.checkpoint
    if job.extras is not None:
        if job.extras.claimed_at and not job.started_at:
            job.started_at = tables.now
            tables.event_log.tell(EventKind.RUNNING, job.id, job.queue)
        if job.extras.cancel_at:
            tables.touch(job)
            return Pulse.CANCEL
    renew(tables, job, tables.now + job.lease_ms * 1_000_000)
    worker = tables.find_worker(job.worker_id)
    if worker is not None and tables.now - worker.last_seen_at >= WORKER_SEEN_EVERY_NS:
        tables.put_worker(msgspec.structs.replace(worker, last_seen_at=tables.now))
    return Pulse.OK


def unknown_pulse(beat: Beat) -> Pulse:
    """For a job that another worker has. A client without tokens knows only `ok` and `cancel`, and must stop."""
    return Pulse.LEASE_LOST if beat.lease_token else Pulse.CANCEL


def pulse_status(pulse: Pulse | Refused) -> HeartbeatStatus:
    """`unknown` when the job's shard was not reached: the worker continues and asks again."""
    return HeartbeatStatus("unknown" if isinstance(pulse, Refused) else Pulse(pulse).name.lower())


def new_beat(job_id: str, body: HeartbeatJob, at: str = "jobs") -> Beat:
    return Beat(
        job_id,
        body.lease_token or 0,
        object_document(body.progress, f"{at}.{job_id}.progress"),
        object_document(body.checkpoint, f"{at}.{job_id}.checkpoint"),
    )


def _plan(context: PlanContext, body: HeartbeatBody) -> Plan:
    beats = [new_beat(job_id, job) for job_id, job in body.jobs.items()]
    groups = spread(beats, lambda beat: context.find_shard_of_job(beat.job_id))

    def conclude(results: list[Any]) -> Answer:
        pulses = gather([unknown_pulse(beat) for beat in beats], groups, results)
        statuses = {beat.job_id: pulse_status(pulse) for beat, pulse in zip(beats, pulses, strict=True)}
        return Answer(200, HeartbeatAnswer(statuses))

    calls = [(shard, Heartbeat([beats[number] for number in numbers])) for shard, numbers in groups.items()]
    return Plan([*calls], conclude)


ENDPOINTS = (
    Endpoint(
        name="heartbeat",
        access="jobs:heartbeat",
        method="POST",
        repeats="freely",
        path="/heartbeat",
        summary="Renew leases, report progress, learn of cancellations",
        body=HeartbeatBody,
        example={"jobs": {"s01_job_18a1f0c2d3e4f5a60a1b2c3d4f": {"lease_token": 1, "progress": {"current": 3}}}},
        answers={200: HeartbeatAnswer},
        plan=_plan,
    ),
)
