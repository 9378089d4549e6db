"""CreateSchedule: a name of its own, terms that were checked, and slots that count from now on."""

from typing import Any

import msgspec
import pytest

from corvo.model import limits
from corvo.model.errors import Refusal
from corvo.model.job import Priority
from corvo.model.sharding import fnv32a
from corvo.ops.schedules import create_schedule as module
from corvo.ops.schedules.create_schedule import CreateSchedule, CreateScheduleBody
from corvo.state.schedules import CatchUp
from tests.support.builders import NOW, SECOND, an_asking
from tests.support.machine import Machine, nothing_changes
from tests.support.schedules import create, look, some_terms, the_schedule

[ENDPOINT] = module.ENDPOINTS


def planned(**fields: Any) -> CreateSchedule:
    body = {"name": "nightly", "queue": "mail", "cron": "0 3 * * *", **fields}
    decoded = msgspec.json.decode(msgspec.json.encode(body), type=CreateScheduleBody)
    assert ENDPOINT.plan is not None
    [(shard, operation)] = ENDPOINT.plan(an_asking(), decoded).calls
    assert shard == fnv32a(body["name"]) % 4
    assert isinstance(operation, CreateSchedule)
    assert operation.schedule_id.startswith(f"s{shard:02d}_sched_")
    return operation


def test_a_schedule_counts_its_slots_from_its_birth() -> None:
    machine = Machine()

    made = machine.one(create(cron="@daily"))

    assert made == the_schedule(machine)
    assert (made.name, made.created_at, made.settled_to, made.fired) == ("nightly", NOW, NOW, 0)
    assert look(machine, NOW) == 0, "it is midnight now, but it was when the schedule was made"
    assert the_schedule(machine).next_at == NOW + 86_400 * SECOND


def test_the_same_request_once_more_changes_nothing_and_gets_the_same_answer() -> None:
    machine = Machine()
    first = machine.one(create())

    with nothing_changes(machine):
        assert machine.one(create(), at=NOW + SECOND) == first


def test_a_name_with_the_same_terms_is_answered_with_the_schedule_that_has_it() -> None:
    machine = Machine()
    first = machine.one(create(number=1))

    with nothing_changes(machine):
        assert machine.one(create(number=2)) == first


def test_a_name_with_other_terms_is_refused() -> None:
    machine = Machine()
    machine.apply(create(number=1))

    with nothing_changes(machine):
        refused = machine.one(create(number=2, queue="sms"))

    assert (refused.code, "exists with other fields; change it" in refused.message) == ("SCHEDULE_EXISTS", True)


def test_a_shard_keeps_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCHEDULES_MAX", 2)
    machine = Machine()
    machine.apply(create("a", 1), create("b", 2))

    with nothing_changes(machine):
        assert machine.one(create("c", 3)).code == "TOO_MANY_SCHEDULES"


def test_a_schedule_survives_a_crash_flushed_or_not() -> None:
    machine = Machine()
    machine.apply(create("a", 1))
    machine.flush()
    machine.apply(create("b", 2))
    before = machine.state()

    machine.restart()

    assert machine.state() == before
    assert the_schedule(machine, "a").id != the_schedule(machine, "b").id


def test_a_body_becomes_terms() -> None:
    operation = planned(
        timezone="Europe/Berlin",
        payload={"a": 1},
        priority="high",
        max_retries=5,
        tags={"team": "x"},
        unique_key="k",
        unique_period=60,
        catch_up="all",
        catch_up_max=7,
    )

    assert operation.terms == some_terms(
        cron="0 3 * * *",
        timezone="Europe/Berlin",
        payload=b'{"a":1}',
        priority=Priority.HIGH,
        max_retries=5,
        tags=b'{"team":"x"}',
        unique_key="k",
        unique_period_ms=60_000,
        catch_up=CatchUp.ALL,
        catch_up_max=7,
    )


def test_what_is_not_said_has_a_default() -> None:
    assert planned().terms == some_terms(cron="0 3 * * *", payload=b"{}")


@pytest.mark.parametrize(
    ("fields", "code", "sentence"),
    [
        ({"cron": "61 * * * *"}, "VALIDATION_ERROR", "cron: '61' in the minute field is not between 0 and 59"),
        ({"cron": "0 0 31 2 *"}, "VALIDATION_ERROR", "cron: the schedule never fires"),
        ({"cron": "H * * * *"}, "VALIDATION_ERROR", "cron: 'h' in the minute field: H and R are refused"),
        ({"timezone": "Mars/Base"}, "VALIDATION_ERROR", "timezone: 'Mars/Base' is not a time zone"),
        ({"tags": [1]}, "VALIDATION_ERROR", "tags: expected a JSON object"),
        ({"tags": {"slot": "x"}}, "VALIDATION_ERROR", "tags: `schedule` and `slot` are set by the server"),
        ({"payload": "x" * 2_000}, "PAYLOAD_TOO_LARGE", "payload: 2002 bytes, at most 1000 are accepted in a schedule"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_wrong_is_refused_before_any_shard_is_asked(fields: dict[str, Any], code: str, sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        planned(**fields)

    assert refused.value.code == code
    assert refused.value.message.startswith(sentence)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a/b"},
        {"name": "s01_sched_00000000000000000000000001"},
        {"name": ""},
        {"catch_up": "some"},
        {"catch_up_max": 0},
        {"catch_up_max": limits.CATCH_UP_MAX + 1},
        {"unique_key": "a\nb"},
        {"nonsense": 1},
    ],
    ids=str,
)
def test_what_the_types_shut_out(fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        planned(**fields)


def test_names_that_the_type_lets_in_are_those_of_the_limits() -> None:
    for name, is_good in (("a.b:c-d_e", True), ("s01_sched_x", False), ("-a", False), ("a" * 201, False)):
        assert (limits.SCHEDULE_NAME.fullmatch(name) is not None) is is_good
        try:
            msgspec.convert(name, module.ScheduleName)
            assert is_good
        except msgspec.ValidationError:
            assert not is_good
