"""ResumeSchedule: slots fire again from now on. Slots missed during the pause do not fire."""

from typing import Any, ClassVar

from corvo.endpoint import Endpoint, Operation, Plan, PlanContext
from corvo.queries.schedule_view import ScheduleView, plan_one
from corvo.rules import schedules
from corvo.state.schedules import Schedule
from corvo.state.tables import Tables


class ResumeSchedule(Operation, tag=50):
    schedule: str  # its id or its name

    result: ClassVar[Any] = Schedule

    def apply(self, tables: Tables) -> Schedule:
        schedule = tables.schedules.require(self.schedule)
        if schedule.is_paused:
            schedule.is_paused = False
            schedule.updated_at = tables.now
            schedules.start_from_now(tables, schedule)
            schedules.put(tables, schedule)
        return schedule


def _plan(context: PlanContext, body: None, schedule: str) -> Plan:
    return plan_one(context, schedule, ResumeSchedule(schedule))


ENDPOINTS = (
    Endpoint(
        name="resume_schedule",
        access="schedules:resume",
        method="POST",
        repeats="freely",
        path="/schedules/{schedule_id}/resume",
        summary="Resume a paused schedule: its slots fire again from now on",
        answers={200: ScheduleView},
        refusals=("SCHEDULE_NOT_FOUND",),
        plan=_plan,
    ),
)
