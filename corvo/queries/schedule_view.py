"""A schedule as clients see it, and the query with which several requests start."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from corvo.endpoint import Answer, Operation, Plan, PlanContext, Read
from corvo.model import cron
from corvo.model.job import PRIORITY_NAMES
from corvo.model.json_input import to_raw
from corvo.model.namespaces import shown_name
from corvo.model.timestamps import to_rfc3339, to_rfc3339_or_none
from corvo.state.schedules import CATCH_UP_NAMES, Schedule
from corvo.state.tables import Tables

SLOTS_SHOWN = 5


class ScheduleView(msgspec.Struct, omit_defaults=True):
    """Optional fields are left out when empty. `payload`, `tags` and `next_slots` are not shown in lists."""

    id: str
    name: str
    queue: str
    cron: str
    timezone: str
    paused: bool
    priority: str
    max_retries: int
    catch_up: str
    catch_up_max: int
    fired: Annotated[int, Meta(description="number of slots, ever")]
    created_at: str
    updated_at: str
    next_run: Annotated[str | None, Meta(description="when it fires next; null while paused")] | UnsetType = UNSET
    last_run: Annotated[str | None, Meta(description="when it last fired; null: never")] | UnsetType = UNSET
    next_at: Annotated[str | None, Meta(description="the same as `next_run`")] = None
    last_slot: Annotated[str | None, Meta(description="the slot that it last fired for")] = None
    last_fired_at: Annotated[str | None, Meta(description="the same as `last_run`")] = None
    unique_key: str = ""
    unique_period: int = 0  # seconds
    payload: Any = None
    tags: Any = None
    next_slots: list[str] = []


class GetSchedule(Read, tag=1035):
    schedule: str  # its id or its name

    result: ClassVar[Any] = Schedule

    def read(self, tables: Tables) -> Schedule:
        return tables.schedules.require(self.schedule)


def in_list(schedule: Schedule, now_ns: int) -> ScheduleView:
    """For lists: without the long fields."""
    terms = schedule.terms
    next_at, last_fired_at = _next_at(schedule, now_ns), to_rfc3339_or_none(schedule.last_fired_at)
    return ScheduleView(
        id=schedule.id,
        name=shown_name(schedule.name),
        queue=shown_name(terms.queue),
        cron=terms.cron,
        timezone=terms.timezone,
        paused=schedule.is_paused,
        priority=PRIORITY_NAMES[terms.priority],
        max_retries=terms.max_retries,
        catch_up=CATCH_UP_NAMES[terms.catch_up],
        catch_up_max=terms.catch_up_max,
        fired=schedule.fired,
        created_at=to_rfc3339(schedule.created_at),
        updated_at=to_rfc3339(schedule.updated_at),
        next_run=next_at,
        last_run=last_fired_at,
        next_at=next_at,
        last_slot=to_rfc3339_or_none(schedule.last_slot),
        last_fired_at=last_fired_at,
        unique_key=terms.unique_key,
        unique_period=terms.unique_period_ms // 1_000,
    )


def in_full(schedule: Schedule, now_ns: int) -> ScheduleView:
    view = in_list(schedule, now_ns)
    view.payload = to_raw(schedule.terms.payload)
    view.tags = to_raw(schedule.terms.tags)
    view.next_slots = list(islice(_slots_ahead(schedule, now_ns), SLOTS_SHOWN))
    view.next_run = view.next_at = view.next_slots[0] if view.next_slots else None
    return view


def plan_one(context: PlanContext, schedule: str, ask: Operation | Read) -> Plan:
    """The plan for an operation whose result is the schedule."""

    def conclude(results: list[Any]) -> Answer:
        return Answer(200, in_full(results[0], context.clock_ns()))

    return Plan([(context.shard_of_schedule(schedule), ask)], conclude)


def _next_at(schedule: Schedule, now_ns: int) -> str | None:
    """The stored time, or after a change that the leader has not processed yet, the time that it will compute."""
    if schedule.next_at > max(now_ns, schedule.settled_to) and not schedule.is_paused:
        return to_rfc3339(schedule.next_at)
    return next(_slots_ahead(schedule, now_ns), None)


def _slots_ahead(schedule: Schedule, now_ns: int) -> Iterator[str]:
    after = max(now_ns, schedule.settled_to)
    while not schedule.is_paused:
        try:
            slot = cron.next_slot(schedule.terms.cron, schedule.terms.timezone, after)
        except ValueError:  # created by a newer gateway with newer time zone data
            return
        if slot is None:
            return
        yield to_rfc3339(slot)
        after = slot
