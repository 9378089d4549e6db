"""Replay: enqueue a new job with the payload, settings and checkpoint of another one.

It has no operation of its own: the plan reads the job and enqueues a new one to the same queue, with the old one as
parent.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Plan, PlanContext
from corvo.model.job import Job
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.enqueue import Enqueue, Enqueued, enqueued
from corvo.queries.job import GetJob
from corvo.rules.job_creation import NewJob


class ReplayBody(Body):
    iteration: Annotated[
        int,
        Meta(
            ge=1,
            le=2**31,
            description="the iteration to start after; a job without iterations starts at its checkpoint",
        ),
    ] = msgspec.field(name="from")


def _copy(job: Job, job_id: str) -> NewJob:
    return NewJob(
        id=job_id,
        queue=job.queue,
        payload=job.payload,
        priority=job.priority,
        max_retries=job.max_retries,
        backoff=job.backoff,
        base_delay_ms=job.base_delay_ms,
        max_delay_ms=job.max_delay_ms,
        tags=job.tags,
        checkpoint=job.checkpoint,
        parent_id=job.id,
    )


def _plan(context: PlanContext, body: ReplayBody, job_id: str) -> Plan:
    def enqueue(results: list[Any]) -> Plan:
        job: Job = results[0].job
        shard = shard_of_queue(job.queue, context.shard_count)
        new = _copy(job, context.mint.job_id(shard))

        def conclude(made: list[Any]) -> Answer:
            return Answer(201, enqueued(new, made[0][0]))

        return Plan([(shard, Enqueue([new], context.room(shard)))], conclude)

    return Plan([(context.shard_of_job(job_id), GetJob(job_id))], enqueue)


ENDPOINTS = (
    Endpoint(
        name="replay",
        access="jobs:replay",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/replay",
        summary="Enqueue a new job that starts at the checkpoint of this one",
        body=ReplayBody,
        example={"from": 1},
        answers={201: Enqueued},
        refusals=("JOB_NOT_FOUND",),
        plan=_plan,
    ),
)
