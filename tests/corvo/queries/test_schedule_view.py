"""A schedule as clients see it: with the slots that come, which the gateway works out."""

from typing import Any

import msgspec
import pytest

from corvo.endpoint import Answer
from corvo.model.errors import Refusal
from corvo.ops.schedules.pause_schedule import PauseSchedule
from corvo.queries.schedule_view import GetSchedule, in_full, in_list, plan_one
from tests.support.builders import NOW, SECOND, an_asking
from tests.support.machine import Machine
from tests.support.schedules import create, look, schedule_id, the_schedule

DAY = 86_400 * SECOND


def as_sent(view: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(view))


def test_everything_is_shown_in_the_words_of_the_request() -> None:
    machine = Machine()
    machine.apply(create(cron="@daily", tags=b'{"a":1}', unique_key="k", unique_period_ms=5_000))
    look(machine, NOW + DAY)

    shown = as_sent(in_full(the_schedule(machine), NOW + DAY))

    midnights = [f"2026-01-0{day}T00:00:00.000000000Z" for day in range(1, 8)]
    assert shown == {
        "id": schedule_id(),
        "name": "nightly",
        "queue": "mail",
        "cron": "@daily",
        "timezone": "UTC",
        "paused": False,
        "priority": "normal",
        "max_retries": 3,
        "catch_up": "last",
        "catch_up_max": 100,
        "fired": 1,
        "created_at": midnights[0],
        "updated_at": midnights[0],
        "next_run": midnights[2],
        "last_run": midnights[1],
        "next_at": midnights[2],
        "last_slot": midnights[1],
        "last_fired_at": midnights[1],
        "unique_key": "k",
        "unique_period": 5,
        "payload": {"to": "all"},
        "tags": {"a": 1},
        "next_slots": midnights[2:7],
    }


def test_the_next_slot_is_known_before_the_leader_has_looked() -> None:
    machine = Machine()
    schedule = machine.one(create(cron="@daily"))

    before = in_list(schedule, NOW).next_at
    look(machine, NOW)

    assert before == in_list(the_schedule(machine), NOW).next_at == "2026-01-02T00:00:00.000000000Z"


def test_slots_that_are_settled_are_not_announced_again_when_a_clock_goes_back() -> None:
    machine = Machine()
    machine.apply(create(cron="@daily"))
    look(machine, NOW + 3 * DAY)

    assert in_full(the_schedule(machine), NOW).next_slots[0] == "2026-01-05T00:00:00.000000000Z"


def test_a_paused_schedule_has_no_next_slot() -> None:
    machine = Machine()
    machine.apply(create())
    look(machine, NOW)
    paused = machine.one(PauseSchedule("nightly"))

    assert (in_full(paused, NOW).next_slots, in_full(paused, NOW).next_at, in_list(paused, NOW).next_at) == (
        [],
        None,
        None,
    )


def test_a_zone_that_this_gateway_does_not_know_has_no_slots_and_does_no_harm() -> None:
    machine = Machine()
    schedule = machine.one(create(timezone="Mars/Base"))

    assert in_full(schedule, NOW).next_slots == []


def test_the_shard_of_the_schedule_is_asked_and_its_answer_shown() -> None:
    machine = Machine()
    schedule = machine.one(create(shard=2))
    plan = plan_one(an_asking(), schedule.id, GetSchedule(schedule.id))

    [(shard, ask)] = plan.calls
    assert shard == 2
    assert isinstance(ask, GetSchedule)
    answer = plan.conclude([ask.read(machine.tables)])
    assert isinstance(answer, Answer)
    assert (answer.status, as_sent(answer.body)) == (200, as_sent(in_full(schedule, NOW)))


@pytest.mark.parametrize("schedule", ["a b", "", "s09_sched_00000000000000000000000001", "s00_sched_1"])
def test_what_no_schedule_can_be_called_is_unknown(schedule: str) -> None:
    with pytest.raises(Refusal) as refused:
        plan_one(an_asking(), schedule, GetSchedule(schedule))

    assert refused.value.code == "SCHEDULE_NOT_FOUND"
