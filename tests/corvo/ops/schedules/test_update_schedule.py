"""UpdateSchedule: what is given is replaced, what is due meanwhile is not lost, and new moments count from now."""

from typing import Any

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.job import Priority
from corvo.ops.schedules import update_schedule as module
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.ops.schedules.update_schedule import NewTerms, UpdateSchedule, UpdateScheduleBody
from corvo.rules import schedules
from corvo.state.schedules import CatchUp, JobTemplate
from tests.support.builders import NOW, SECOND, an_asking
from tests.support.machine import Machine, nothing_changes
from tests.support.schedules import create, look, schedule_id, some_terms, the_schedule

[ENDPOINT] = module.ENDPOINTS
MINUTE = 60 * SECOND


def update(schedule: str = "nightly", **fields: Any) -> UpdateSchedule:
    return UpdateSchedule(schedule, NewTerms(**fields))


def planned(schedule: str = "nightly", **fields: Any) -> UpdateSchedule:
    decoded = msgspec.json.decode(msgspec.json.encode(fields), type=UpdateScheduleBody)
    assert ENDPOINT.plan is not None
    [(_, operation)] = ENDPOINT.plan(an_asking(), decoded, schedule).calls
    assert isinstance(operation, UpdateSchedule)
    return operation


def test_the_new_terms_have_the_fields_of_the_terms_in_their_order() -> None:
    assert NewTerms.__struct_fields__ == JobTemplate.__struct_fields__


@pytest.mark.parametrize("schedule", ["nightly", schedule_id(1)])
def test_only_what_is_given_is_replaced(schedule: str) -> None:
    machine = Machine()
    machine.apply(create())

    changed = machine.one(update(schedule, queue="sms", catch_up=CatchUp.ALL), at=NOW + SECOND)

    assert changed == the_schedule(machine)
    assert changed.terms == some_terms(queue="sms", catch_up=CatchUp.ALL)
    assert (changed.created_at, changed.updated_at) == (NOW, NOW + SECOND)


def test_a_repetition_changes_nothing_and_gets_the_same_answer() -> None:
    machine = Machine()
    machine.apply(create())
    first = machine.one(update(queue="sms"))

    with nothing_changes(machine):
        assert machine.one(update(queue="sms"), at=NOW + SECOND) == first


def test_an_unknown_schedule_is_refused() -> None:
    machine = Machine()

    with nothing_changes(machine):
        assert machine.one(update(queue="sms")).code == "SCHEDULE_NOT_FOUND"


def test_a_slot_that_is_due_is_fired_with_the_new_payload() -> None:
    machine = Machine()
    machine.apply(create())
    look(machine, NOW)
    firings = schedules.due(machine.tables, NOW + MINUTE)

    machine.one(update(payload=b"2"), at=NOW + MINUTE)
    with nothing_changes(machine):
        assert machine.one(FireSchedules(firings)) == 0, "worked out for the terms of before"

    assert look(machine, NOW + MINUTE) == 1
    assert [job.payload for job in machine.jobs()] == [b"2"]


def test_a_new_expression_counts_from_the_moment_of_the_change() -> None:
    machine = Machine()
    machine.apply(create(catch_up=CatchUp.ALL))
    look(machine, NOW)

    machine.one(update(cron="*/10 * * * *"), at=NOW + 35 * MINUTE)

    assert look(machine, NOW + 35 * MINUTE) == 0, "neither 35 slots of the old one nor 3 of the new one"
    assert the_schedule(machine).next_at == NOW + 40 * MINUTE
    assert look(machine, NOW + 40 * MINUTE) == 1


def test_a_paused_schedule_stays_paused() -> None:
    machine = Machine()
    machine.apply(create())
    machine.tables.schedules.require("nightly").is_paused = True

    machine.one(update(cron="*/10 * * * *"))

    assert look(machine, NOW + 60 * MINUTE) == 0


def test_a_body_names_only_what_changes() -> None:
    assert planned() == update()
    assert planned(tags={}, unique_key="", payload=None) == update(tags=b"{}", unique_key="", payload=b"null")
    assert planned(
        priority="critical", unique_period=5, catch_up="skip", cron="@daily", timezone="Asia/Tokyo", name="nightly"
    ) == update(
        priority=Priority.CRITICAL,
        unique_period_ms=5_000,
        catch_up=CatchUp.SKIP,
        cron="@daily",
        timezone="Asia/Tokyo",
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"cron": "x"}, "cron: a schedule has 5 fields"),
        ({"timezone": "x"}, "timezone: 'x' is not a time zone"),
        ({"name": "other"}, "name: a schedule cannot be renamed"),
        ({"tags": {"schedule": 1}}, "tags: `schedule` and `slot` are set by the server"),
    ],
)
def test_what_is_wrong_is_refused_before_any_shard_is_asked(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        planned(**fields)

    assert (refused.value.status, refused.value.message.startswith(sentence)) == (400, True)
