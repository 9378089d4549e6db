"""PauseSchedule: no slot fires until the schedule is resumed. Its jobs stay."""

from typing import Any, ClassVar

from corvo.endpoint import Endpoint, Operation, Plan, PlanContext
from corvo.queries.schedule_view import ScheduleView, plan_one
from corvo.rules import schedules
from corvo.state.schedules import Schedule
from corvo.state.tables import Tables


class PauseSchedule(Operation, tag=49):
    schedule: str  # its id or its name

    result: ClassVar[Any] = Schedule

    def apply(self, tables: Tables) -> Schedule:
        schedule = tables.schedules.require(self.schedule)
        if not schedule.is_paused:
            schedule.is_paused = True
            schedule.updated_at = tables.now
            schedules.put(tables, schedule)
        return schedule


def _plan(context: PlanContext, body: None, schedule: str) -> Plan:
    return plan_one(context, schedule, PauseSchedule(schedule))


ENDPOINTS = (
    Endpoint(
        name="pause_schedule",
        access="schedules:pause",
        method="POST",
        repeats="freely",
        path="/schedules/{schedule_id}/pause",
        summary="Pause a schedule: no slot fires until it is resumed",
        answers={200: ScheduleView},
        refusals=("SCHEDULE_NOT_FOUND",),
        plan=_plan,
    ),
)
