"""Builders of schedules, and the leader's turn: what it works out at a moment, applied until nothing is due."""

from typing import Any

from corvo.model.job import Job, Priority
from corvo.ops.schedules.create_schedule import CreateSchedule
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.rules import schedules
from corvo.state import keys
from corvo.state.schedules import CatchUp, JobTemplate, Schedule, decode_schedule
from tests.support.machine import Machine
from tests.support.shards import Shards


def schedule_id(number: int = 1, shard: int = 0) -> str:
    return f"s{shard:02d}_sched_{number:026d}"


def some_terms(**fields: Any) -> JobTemplate:
    defaults: dict[str, Any] = {
        "queue": "mail",
        "cron": "* * * * *",
        "timezone": "UTC",
        "payload": b'{"to": "all"}',
        "priority": Priority.NORMAL,
        "max_retries": 3,
        "tags": b"",
        "unique_key": "",
        "unique_period_ms": 0,
        "catch_up": CatchUp.LAST,
        "catch_up_max": 100,
    }
    return JobTemplate(**(defaults | fields))


def create(name: str = "nightly", number: int = 1, shard: int = 0, **fields: Any) -> CreateSchedule:
    return CreateSchedule(schedule_id(number, shard), name, some_terms(**fields))


def look(machine: Machine, at: int) -> int:
    """The leader's turn at this moment. How many slots fired."""
    machine.now = at
    fired = 0
    for _ in range(1_000):
        firings = schedules.due(machine.tables, at)
        if not firings:
            return fired
        fired += machine.one(FireSchedules(firings), at=at)
    raise AssertionError("something is due for ever")


def look_at_all(shards: Shards, at: int) -> int:
    """The turns of all leaders, and the errands that follow."""
    shards.now = at
    fired = sum(look(machine, at) for machine in shards.machines)
    shards.carry()
    return fired


def the_schedule(machine: Machine, name: str = "nightly") -> Schedule:
    """As it is remembered, which must be as it is stored."""
    schedule = machine.tables.schedules.require(name)
    raw = machine.tables.overlay.get(keys.schedule(schedule.id))
    assert raw is not None
    assert decode_schedule(raw) == schedule
    return schedule


def slots_of(jobs: list[Job]) -> list[str]:
    """The slots in the tags, in order."""
    return sorted(job.tags.decode().split('"slot":"')[1][:19] for job in jobs)
