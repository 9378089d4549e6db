"""Run a schedule now: create its job at once, in addition to its slots, even if it is paused.

It has no operation of its own: the plan reads the schedule and enqueues its job like any other, so the answer holds the
result. The gateway chooses the id, so a repetition creates no second job.
"""

from typing import Any

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.enqueue import Enqueue, Enqueued, enqueued
from corvo.queries.schedule_view import GetSchedule
from corvo.rules.schedules import new_job
from corvo.state.schedules import Schedule


def _plan(context: PlanContext, body: None, schedule: str) -> Plan:
    def enqueue(results: list[Any]) -> Plan:
        found: Schedule = results[0]
        shard = shard_of_queue(found.terms.queue, context.shard_count)
        new = new_job(found, context.mint.job_id(shard))

        def conclude(results: list[Any]) -> Answer:
            made = enqueued(new, results[0][0])
            return Answer(200 if made.unique_existing else 201, made)

        return Plan([(shard, Enqueue([new], context.room(shard)))], conclude)

    return Plan([(context.shard_of_schedule(schedule), GetSchedule(schedule))], enqueue)


ENDPOINTS = (
    Endpoint(
        name="run_schedule",
        access="schedules:run",
        method="POST",
        repeats="by key",
        path="/schedules/{schedule_id}/run",
        summary="Create the job of a schedule at once, in addition to its slots",
        answers={201: Enqueued, 200: Enqueued},
        refusals=("SCHEDULE_NOT_FOUND",),
        plan=_plan,
    ),
)
