"""Schedules, read from the shards that keep them (linearizable)."""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Query, Read
from corvo.model.reach import Reach
from corvo.queries.schedule_view import GetSchedule, ScheduleView, in_list, plan_one
from corvo.state.schedules import Schedule
from corvo.state.tables import Tables


class ListSchedules(Read, tag=1036):
    """The schedules of one shard that are in reach, without the long fields."""

    reach: Reach | None = None  # None: the default namespace, as a gateway of a former version asks

    result: ClassVar[Any] = list[Schedule]

    def read(self, tables: Tables) -> list[Schedule]:
        reach = self.reach or Reach()
        return [_short(one) for one in tables.schedules.all() if reach.holds(one.terms.queue)]


def _short(schedule: Schedule) -> Schedule:
    terms = msgspec.structs.replace(schedule.terms, payload=b"", tags=b"")
    return msgspec.structs.replace(schedule, terms=terms)


def _plan_one(context: PlanContext, body: None, schedule: str) -> Plan:
    return plan_one(context, schedule, GetSchedule(schedule))


def _plan_all(context: PlanContext, body: None) -> Plan:
    def conclude(results: list[list[Schedule]]) -> Answer:
        now_ns = context.clock_ns()
        found = sorted((schedule for of_shard in results for schedule in of_shard), key=lambda one: one.name)
        return Answer(200, [in_list(schedule, now_ns) for schedule in found])

    return Plan([(shard, ListSchedules(context.reach)) for shard in range(context.shard_count)], conclude)


QUERIES: tuple[type[Query], ...] = (GetSchedule, ListSchedules)

ENDPOINTS = (
    Endpoint(
        name="schedules",
        access="schedules:read",
        method="GET",
        path="/schedules",
        summary="All cron schedules by name",
        answers={200: list[ScheduleView]},
        plan=_plan_all,
    ),
    Endpoint(
        name="get_schedule",
        access="schedules:read",
        method="GET",
        path="/schedules/{schedule_id}",
        summary="One schedule, by its id or name, with its next slots",
        answers={200: ScheduleView},
        refusals=("SCHEDULE_NOT_FOUND",),
        plan=_plan_one,
    ),
)
