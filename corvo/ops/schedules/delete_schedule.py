"""DeleteSchedule: no further slot fires, and the name is free. Its jobs stay.

The plan reads the schedule first and refuses an unknown one, then deletes it by its id, which is never reused: a
repeated deletion has nothing to do.
"""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.namespaces import shown_name
from corvo.queries.schedule_view import GetSchedule
from corvo.rules import schedules
from corvo.state.schedules import Schedule
from corvo.state.tables import Tables


class DeletedSchedule(msgspec.Struct):
    id: str
    name: str
    status: str = "deleted"


class DeleteSchedule(Operation, tag=48):
    schedule_id: str

    result: ClassVar[Any] = bool

    def apply(self, tables: Tables) -> bool:
        """Whether it existed."""
        schedule = tables.schedules.find(self.schedule_id)
        if schedule is None or schedule.id != self.schedule_id:
            return False
        schedules.drop(tables, schedule)
        return True


def _plan(context: PlanContext, body: None, schedule: str) -> Plan:
    shard = context.shard_of_schedule(schedule)

    def delete(results: list[Any]) -> Plan:
        found: Schedule = results[0]
        done = Answer(200, DeletedSchedule(found.id, shown_name(found.name)))
        return Plan([(shard, DeleteSchedule(found.id))], lambda _: done)

    return Plan([(shard, GetSchedule(schedule))], delete)


ENDPOINTS = (
    Endpoint(
        name="delete_schedule",
        access="schedules:delete",
        method="DELETE",
        repeats="freely",
        path="/schedules/{schedule_id}",
        summary="Delete a schedule; its jobs stay",
        answers={200: DeletedSchedule},
        refusals=("SCHEDULE_NOT_FOUND",),
        plan=_plan,
    ),
)
