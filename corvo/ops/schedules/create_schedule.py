"""CreateSchedule: from now on, create a job at every slot of a cron expression.

Names are unique in the cluster. If the name exists with the same fields, the existing schedule is returned, so a
program can create its schedules at every start; with other fields the request is refused.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model import cron
from corvo.model.errors import Refusal, invalid
from corvo.model.job import PRIORITY_NAMES, Priority, QueueName, ShortText
from corvo.model.json_input import check_numbers, no_document, object_document
from corvo.model.limits import (
    ATTEMPTS_MAX,
    CATCH_UP_MAX,
    DELAY_MS_MAX,
    SCHEDULES_MAX,
    SMALL_JSON_BYTES_MAX,
)
from corvo.model.name_fields import NameKind
from corvo.model.namespaces import shown_name
from corvo.queries.schedule_view import ScheduleView, in_full
from corvo.rules import schedules
from corvo.state.schedules import CATCH_UP_NAMES, CatchUp, JobTemplate, Schedule
from corvo.state.tables import Tables

ScheduleName = Annotated[
    str,
    Meta(
        pattern=r"^(?!s[0-9]{2}_sched_)[A-Za-z0-9][A-Za-z0-9._:-]{0,199}\Z",
        description="1 to 200 characters of letters, digits and `._:-`, beginning with a letter or digit",
    ),
    NameKind.SCHEDULE,
]
CronText = Annotated[ShortText, Meta(description="five fields, six with the seconds last, `@daily`, `@every 90s` …")]
ZoneText = Annotated[ShortText, Meta(description="a name of the IANA time zone database, such as Europe/Berlin")]
UniqueKey = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f]{0,256}\Z",
        description="up to 256 characters, none of them a control character: while a job of the queue holds it, a slot "
        "makes no further one; empty: none",
    ),
]
UniquePeriod = Annotated[
    int, Meta(ge=0, le=DELAY_MS_MAX // 1000, description="seconds that a job holds its key at most; 0: an hour")
]
Attempts = Annotated[int, Meta(ge=0, le=ATTEMPTS_MAX, description="attempts in total")]
CatchUpName = Literal["skip", "last", "all"]
CatchUpMax = Annotated[
    int, Meta(ge=1, le=CATCH_UP_MAX, description="how many of the newest missed slots fire with `all`")
]
PriorityName = Literal["critical", "high", "normal"]

PRIORITY = {name: Priority(number) for number, name in enumerate(PRIORITY_NAMES)}
CATCH_UP = {name: CatchUp(number) for number, name in enumerate(CATCH_UP_NAMES)}


class CreateScheduleBody(Body):
    name: ScheduleName
    queue: QueueName
    cron: CronText
    timezone: ZoneText = "UTC"
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))
    priority: PriorityName = "normal"
    max_retries: Attempts = 3
    tags: msgspec.Raw = msgspec.field(default_factory=no_document)
    unique_key: UniqueKey = ""
    unique_period: UniquePeriod = 0
    catch_up: CatchUpName = "last"
    catch_up_max: CatchUpMax = 100


class CreateSchedule(Operation, tag=46):
    schedule_id: str
    name: str
    terms: JobTemplate

    result: ClassVar[Any] = Schedule

    def apply(self, tables: Tables) -> Schedule:
        known = tables.schedules.find(self.name)
        if known is not None:
            if known.id == self.schedule_id or known.terms == self.terms:
                return known
            raise Refusal(
                "SCHEDULE_EXISTS", f"the schedule {shown_name(self.name)} exists with other fields; change it with PUT"
            )
        if len(tables.schedules) >= SCHEDULES_MAX:
            raise Refusal("TOO_MANY_SCHEDULES", f"a shard keeps at most {SCHEDULES_MAX} schedules; delete some first")
        now = tables.now
        schedule = Schedule(self.schedule_id, self.name, self.terms, now, now, settled_to=now, next_at=now)
        schedules.put(tables, schedule)
        return schedule


def check_cron(expression: str, timezone: str) -> None:
    try:
        cron.check("@daily", timezone)
    except ValueError as error:
        raise invalid("timezone", str(error)) from None
    try:
        cron.check(expression, timezone)
    except ValueError as error:
        raise invalid("cron", str(error)) from None


def checked_payload(context: PlanContext, raw: msgspec.Raw) -> bytes:
    """With a smaller limit than a job's payload: it is written again with the schedule at every slot."""
    payload, bytes_max = bytes(raw), min(context.payload_bytes_max, SMALL_JSON_BYTES_MAX)
    if len(payload) > bytes_max:
        sentence = f"payload: {len(payload)} bytes, at most {bytes_max} are accepted in a schedule"
        raise Refusal("PAYLOAD_TOO_LARGE", sentence, field="payload")
    check_numbers(payload, "payload")
    return payload


def checked_tags(raw: msgspec.Raw) -> bytes:
    tags = object_document(raw, "tags")
    if tags and any(own in msgspec.json.decode(tags, type=dict[str, msgspec.Raw]) for own in schedules.OWN_TAGS):
        raise invalid("tags", "`schedule` and `slot` are set by the server; use other names")
    return tags


def _plan(context: PlanContext, body: CreateScheduleBody) -> Plan:
    check_cron(body.cron, body.timezone)
    terms = JobTemplate(
        queue=body.queue,
        cron=body.cron,
        timezone=body.timezone,
        payload=checked_payload(context, body.payload),
        priority=PRIORITY[body.priority],
        max_retries=body.max_retries,
        tags=checked_tags(body.tags),
        unique_key=body.unique_key,
        unique_period_ms=body.unique_period * 1_000,
        catch_up=CATCH_UP[body.catch_up],
        catch_up_max=body.catch_up_max,
    )
    schedule_id = context.mint.schedule_id(context.shard_of_schedule(body.name))

    def conclude(results: list[Any]) -> Answer:
        schedule: Schedule = results[0]
        return Answer(201 if schedule.id == schedule_id else 200, in_full(schedule, context.clock_ns()))

    shard = context.shard_of_schedule(schedule_id)
    return Plan([(shard, CreateSchedule(schedule_id, body.name, terms))], conclude)


ENDPOINTS = (
    Endpoint(
        name="create_schedule",
        access="schedules:write",
        method="POST",
        repeats="by key",
        path="/schedules",
        summary="Create a cron schedule; if it exists with the same fields, it is returned",
        body=CreateScheduleBody,
        example={"name": "nightly", "queue": "reports", "cron": "0 3 * * *"},
        answers={201: ScheduleView, 200: ScheduleView},
        refusals=("PAYLOAD_TOO_LARGE", "SCHEDULE_EXISTS", "TOO_MANY_SCHEDULES"),
        plan=_plan,
    ),
)
