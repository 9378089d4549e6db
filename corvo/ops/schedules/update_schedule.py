"""UpdateSchedule: change the terms of a schedule. Fields that are not given stay.

A new cron expression or time zone applies from the change on: slots that the old one missed do not fire. Any other
change also applies to slots that are already due.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import Refusal, invalid
from corvo.model.job import Count, Priority, QueueName, SpanMs
from corvo.model.json_input import EMPTY_RAW, no_document
from corvo.model.limits import SCHEDULE_ID
from corvo.model.name_fields import NameKind
from corvo.ops.schedules.create_schedule import (
    CATCH_UP,
    PRIORITY,
    Attempts,
    CatchUpMax,
    CatchUpName,
    CronText,
    PriorityName,
    UniqueKey,
    UniquePeriod,
    ZoneText,
    check_cron,
    checked_payload,
    checked_tags,
)
from corvo.queries.schedule_view import GetSchedule, ScheduleView, plan_one
from corvo.rules import schedules
from corvo.state.schedules import CatchUp, JobTemplate, Schedule
from corvo.state.tables import Tables


class UpdateScheduleBody(Body):
    name: Annotated[str, Meta(description="may be given, but not changed"), NameKind.SCHEDULE] | None = None
    queue: QueueName | None = None
    cron: CronText | None = None
    timezone: ZoneText | None = None
    payload: msgspec.Raw = msgspec.field(default_factory=no_document)
    priority: PriorityName | None = None
    max_retries: Attempts | None = None
    tags: msgspec.Raw = msgspec.field(default_factory=no_document)
    unique_key: UniqueKey | None = None
    unique_period: UniquePeriod | None = None
    catch_up: CatchUpName | None = None
    catch_up_max: CatchUpMax | None = None


class NewTerms(msgspec.Struct, array_like=True, frozen=True):
    """The fields of `JobTemplate`, None for those that stay."""

    queue: str | None = None
    cron: str | None = None
    timezone: str | None = None
    payload: bytes | None = None
    priority: Priority | None = None
    max_retries: Count | None = None
    tags: bytes | None = None
    unique_key: str | None = None
    unique_period_ms: SpanMs | None = None
    catch_up: CatchUp | None = None
    catch_up_max: Count | None = None

    def applied_to(self, terms: JobTemplate) -> JobTemplate:
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(terms, **given)


class UpdateSchedule(Operation, tag=47):
    schedule: str  # its id or its name
    terms: NewTerms

    result: ClassVar[Any] = Schedule

    def apply(self, tables: Tables) -> Schedule:
        schedule = tables.schedules.require(self.schedule)
        before, after = schedule.terms, self.terms.applied_to(schedule.terms)
        if before == after:  # no change, or a repeated request
            return schedule
        schedule.terms = after
        schedule.updated_at = tables.now
        if (before.cron, before.timezone) != (after.cron, after.timezone):
            schedules.start_from_now(tables, schedule)
        schedules.put(tables, schedule)
        return schedule


def _plan(context: PlanContext, body: UpdateScheduleBody, schedule: str) -> Plan:
    check_cron("@daily" if body.cron is None else body.cron, "UTC" if body.timezone is None else body.timezone)
    terms = NewTerms(
        queue=body.queue,
        cron=body.cron,
        timezone=body.timezone,
        payload=None if body.payload is EMPTY_RAW else checked_payload(context, body.payload),
        priority=None if body.priority is None else PRIORITY[body.priority],
        max_retries=body.max_retries,
        tags=None if body.tags is EMPTY_RAW or bytes(body.tags) == b"null" else checked_tags(body.tags),
        unique_key=body.unique_key,
        unique_period_ms=None if body.unique_period is None else body.unique_period * 1_000,
        catch_up=None if body.catch_up is None else CATCH_UP[body.catch_up],
        catch_up_max=body.catch_up_max,
    )
    change = plan_one(context, schedule, UpdateSchedule(schedule, terms))
    if body.name is None or body.name == schedule:
        return change
    if SCHEDULE_ID.fullmatch(schedule):
        return _after_check(context, schedule, body.name, change)
    raise _renamed()


def _renamed() -> Refusal:
    return invalid("name", "a schedule cannot be renamed; create another one and delete this one")


def _after_check(context: PlanContext, schedule: str, name: str, change: Plan) -> Plan:
    """The request names the schedule by its id: read its name first. A name never changes."""

    def conclude(results: list[Any]) -> Plan:
        if results[0].name != name:
            raise _renamed()
        return change

    return Plan([(context.shard_of_schedule(schedule), GetSchedule(schedule))], conclude)


ENDPOINTS = (
    Endpoint(
        name="update_schedule",
        access="schedules:write",
        method="PUT",
        repeats="freely",
        path="/schedules/{schedule_id}",
        summary="Change a schedule, by its id or name; fields that are not given stay",
        body=UpdateScheduleBody,
        example={"cron": "0 4 * * *"},
        answers={200: ScheduleView},
        refusals=("PAYLOAD_TOO_LARGE", "SCHEDULE_NOT_FOUND"),
        plan=_plan,
    ),
)
