"""`corvo schedules`: what each command asks, and what it prints."""

import io
import sys
from typing import Any, get_args

import msgspec
import pytest

from corvo.cli.commands import schedules as commands
from corvo.cli.main import run
from corvo.ops.jobs.enqueue import Enqueued
from corvo.ops.schedules import create_schedule
from corvo.ops.schedules.create_schedule import CreateScheduleBody
from corvo.ops.schedules.delete_schedule import DeletedSchedule
from corvo.queries.schedule_view import ScheduleView
from tests.cli.answers import ID, NOON
from tests.client.playback import Playback

SCHEDULE_ID = "s01_sched_01hzy3v7k2m4n6p8q0r2s4t6v8"


def a_schedule(**fields: Any) -> ScheduleView:
    fixed = {"id": SCHEDULE_ID, "name": "nightly", "queue": "reports", "cron": "30 3 * * *", "timezone": "Asia/Tokyo"}
    rest: dict[str, Any] = {
        "paused": False,
        "priority": "normal",
        "max_retries": 3,
        "catch_up": "last",
        "catch_up_max": 100,
    }
    moments: dict[str, Any] = {
        "created_at": NOON,
        "updated_at": NOON,
        "next_at": NOON,
        "next_slots": [NOON],
        "fired": 7,
    }
    return ScheduleView(**(fixed | rest | moments | {"payload": {"a": 1}} | fields))


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


@pytest.mark.parametrize("command", ["list", "show", "create", "update", "pause", "resume", "run", "delete"])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedules", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo schedules {command}" in shown


@pytest.mark.parametrize("words", [["schedules"], ["schedules", "list"]])
def test_without_a_command_they_are_listed(
    playback: Playback, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    playback.answer("GET", "/schedules", [])

    assert run([*words, "--output", "json"]) == 0

    assert capsys.readouterr().out == "[]\n"
    assert [asked.path for asked in playback.asked] == ["/api/v1/schedules"]


def test_the_choices_are_those_of_the_core() -> None:
    assert get_args(commands.CatchUpName) == get_args(create_schedule.CatchUpName)
    assert get_args(commands.PriorityName) == (*get_args(create_schedule.PriorityName), "low")


def test_create_sends_what_was_asked(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/schedules", a_schedule(catch_up="all", catch_up_max=12), 201)
    options = ["--timezone", "Asia/Tokyo", "--priority", "high", "--max-retries", "5", "--unique-key", "k"]
    more = ["--tag", "a=b", "--catch-up", "all", "--catch-up-max", "12"]

    assert run(["schedules", "create", "nightly", "30 3 * * *", "reports", '{"n": 1.10}', *options, *more]) == 0

    body = msgspec.json.decode(playback.asked[0].body, type=CreateScheduleBody)
    assert (body.name, body.cron, body.queue, body.timezone) == ("nightly", "30 3 * * *", "reports", "Asia/Tokyo")
    assert (body.priority, body.max_retries, body.unique_key) == ("high", 5, "k")
    assert (body.catch_up, body.catch_up_max) == ("all", 12)
    assert (bytes(body.payload), bytes(body.tags)) == (b'{"n": 1.10}', b'{"a":"b"}')
    lines = [line.strip().split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["catch-up", "all, at most 12"] in lines


def test_create_leaves_what_is_not_said_to_the_server(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    playback.answer("POST", "/schedules", a_schedule(), 201)
    monkeypatch.setattr(sys, "stdin", io.StringIO("[1]\n"))

    assert run(["schedules", "create", "nightly", "@daily", "reports", "-"]) == 0

    assert playback.asked[0].body == b'{"name":"nightly","queue":"reports","cron":"@daily","payload":[1]}'


def test_update_sends_what_was_named_and_nothing_else(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("PUT", "/schedules/nightly", a_schedule(cron="@daily"))
    options = ["--cron", "@daily", "--payload", "{}", "--unique-key", "", "--tag", "a=b", "--catch-up-max", "3"]

    assert run(["schedules", "update", "nightly", *options]) == 0

    sent = {"cron": "@daily", "payload": {}, "unique_key": "", "tags": {"a": "b"}, "catch_up_max": 3}
    assert msgspec.json.decode(playback.asked[0].body) == sent
    lines = [line.strip().split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["cron", "@daily"] in lines


def test_update_with_a_payload_that_is_no_json_asks_nothing(playback: Playback) -> None:
    assert run(["schedules", "update", "nightly", "--payload", "{"]) == 2
    assert playback.asked == []


def test_list_shows_a_row_for_each(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/schedules", [a_schedule(), a_schedule(name="off", paused=True, last_slot=NOON)])

    assert run(["schedules", "list"]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["nightly", "30", "3", "*", "*", "*", "Asia/Tokyo", "reports", "2026-01-31", "12:00:00Z", "7"]
    assert lines[2][8:] == ["paused", "2026-01-31", "12:00:00Z", "7"]


@pytest.mark.parametrize(
    ("command", "method", "path"),
    [
        ("show", "GET", "/schedules/nightly"),
        ("pause", "POST", "/schedules/nightly/pause"),
        ("resume", "POST", "/schedules/nightly/resume"),
    ],
)
def test_one_schedule_is_asked_for_and_shown(
    playback: Playback, capsys: pytest.CaptureFixture[str], command: str, method: str, path: str
) -> None:
    playback.answer(method, path, a_schedule(paused=command == "pause"))

    assert run(["schedules", command, "nightly"]) == 0
    lines = [line.strip().split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["id", SCHEDULE_ID] in lines
    assert ["state", "paused" if command == "pause" else "running"] in lines
    assert ["payload", '{"a":1}'] in lines

    assert run(["schedules", command, "nightly", "--output", "json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=ScheduleView).id == SCHEDULE_ID


def test_run_prints_the_job(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/schedules/nightly/run", Enqueued(ID, "pending"), 201)

    assert run(["schedules", "run", "nightly"]) == 0

    assert capsys.readouterr().out.split() == [ID, "pending"]


def test_delete_says_what_is_gone(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("DELETE", "/schedules/nightly", DeletedSchedule(SCHEDULE_ID, "nightly"))

    assert run(["schedules", "delete", "nightly", "--yes"]) == 0

    assert capsys.readouterr().out.split() == ["nightly", "deleted"]


def test_delete_without_a_terminal_needs_a_yes(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedules", "delete", "nightly"]) == 2

    assert "give --yes" in capsys.readouterr().err and playback.asked == []


def test_a_refusal_is_one_line_and_exit_code_1(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.refuse("GET", "/schedules/x", 404, "SCHEDULE_NOT_FOUND", "no schedule has the id or name 'x'")

    assert run(["schedules", "show", "x"]) == 1

    assert capsys.readouterr().err == "corvo: no schedule has the id or name 'x' (SCHEDULE_NOT_FOUND)\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "nightly", "@daily"],
        ["create", "nightly", "@daily", "mail", "{nonsense"],
        ["create", "nightly", "@daily", "mail", "--tag", "novalue"],
        ["create", "nightly", "@daily", "mail", "--catch-up", "some"],
        ["show"],
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedules", *arguments]) == 2

    assert len(capsys.readouterr().err.splitlines()) == 1
