"""What all commands share: the server's address, the key, the output format, errors as JSON."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from corvo.cli.commands import requests
from corvo.cli.main import app, run
from corvo.ops.jobs.enqueue import Enqueued
from tests.cli.answers import ID, prepare
from tests.client.playback import Playback


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, child in getattr(command, "commands", {}).items():
        yield from leaves(child, (*path, name))
    if not hasattr(command, "commands"):
        yield path, command


COMMANDS = dict(leaves(get_command(app)))


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CORVO_SERVER", "CORVO_URL", "CORVO_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CORVO_SERVER", playback.url)
    prepare(playback)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_prints_json_on_request(path: tuple[str, ...]) -> None:
    flags = {flag for parameter in COMMANDS[path].params for flag in parameter.opts}

    assert {"--output", "-o", "--output-json"} <= flags
    is_of_an_app = path == ("worker",)  # whose program has the key and the authority, or the variables
    assert "--server" not in flags or is_of_an_app or {"--api-key", "--ca-cert"} <= flags


def test_the_server_may_be_named_by_either_variable(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CORVO_SERVER")
    monkeypatch.setenv("CORVO_URL", playback.url)

    assert run(["queues"]) == 0

    assert [one.path for one in playback.asked] == ["/api/v1/queues"]


def test_corvo_server_wins_over_corvo_url(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_URL", "http://127.0.0.1:9")

    assert run(["queues"]) == 0


def test_the_key_is_sent_with_every_request(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["queues", "--api-key", "flag"]) == 0
    monkeypatch.setenv("CORVO_API_KEY", "variable")
    assert run(["queues"]) == 0
    assert run(["queues", "--api-key", "flag"]) == 0
    monkeypatch.delenv("CORVO_API_KEY")
    assert run(["queues"]) == 0

    assert [one.get("x-api-key") for one in playback.headers] == ["flag", "variable", "flag", None]


def test_a_key_that_no_header_can_carry_is_refused_here(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["queues", "--api-key", "a\r\nx: y"]) == 2

    assert "API key" in capsys.readouterr().err
    assert playback.asked == []


@pytest.mark.parametrize("flag", [["--output", "json"], ["-o", "json"], ["--output=json"], ["--output-json"]])
def test_json_has_several_spellings(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["queues", *flag]) == 0

    assert json.loads(capsys.readouterr().out)[0]["name"] == "mail"


def error_of(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    shown = capsys.readouterr()
    assert shown.out == ""
    error: dict[str, str] = json.loads(shown.err)
    return error


def test_a_refusal_is_json_too(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.refuse("GET", "/jobs/nope", 404, "JOB_NOT_FOUND", "no job has the id 'nope'")

    assert run(["inspect", "nope", "--output", "json"]) == 1

    assert error_of(capsys) == {"error": "no job has the id 'nope'", "code": "JOB_NOT_FOUND"}


def test_no_answer_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert run(["status", "--output-json", "--server", f"http://127.0.0.1:{taken.getsockname()[1]}"]) == 1

    assert error_of(capsys)["code"] == "UNREACHABLE"


@pytest.mark.parametrize(
    "arguments",
    [
        ["queues", "--nonsense", "--output", "json"],
        ["nonsense", "--output-json"],
        ["enqueue", "mail", "{nonsense", "-o", "json"],
        ["search", "--created-after", "soon", "--output=json"],
        ["clear", "mail", "--output", "json"],
        ["server", "--shards", "none", "--output", "json"],
    ],
)
def test_wrong_usage_is_json_too(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2

    assert error_of(capsys)["code"] == "USAGE"
    assert run(["nonsense"]) == 2
    assert capsys.readouterr().err.startswith("corvo: ")  # the format is forgotten again


def test_tags_come_one_by_one_or_as_json(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/enqueue", Enqueued(ID, "pending"), 201)

    assert run(["enqueue", "mail", "--tags", '{"tenant": "acme", "tier": 1}', "--tag", "tier=2"]) == 0
    assert json.loads(playback.asked[-1].body)["tags"] == {"tenant": "acme", "tier": "2"}
    for bad in ("acme", "[1]", "1"):
        assert run(["enqueue", "mail", "--tags", bad]) == 2
        assert "--tags is no JSON object" in capsys.readouterr().err


def test_low_is_accepted_and_served_with_normal(playback: Playback) -> None:
    playback.answer("POST", "/enqueue", Enqueued(ID, "pending"), 201)

    assert run(["enqueue", "mail", "--priority", "low"]) == 0

    assert "priority" not in json.loads(playback.asked[-1].body)  # normal is the default


@pytest.mark.parametrize(("when", "expected"), [("2030-02-10", "2030-02-10T00:00:00Z"), ("1h", None), ("+1h", None)])
def test_a_job_is_scheduled_for_a_date_or_after_a_span(playback: Playback, when: str, expected: str | None) -> None:
    playback.answer("POST", "/enqueue", Enqueued(ID, "scheduled"), 201)

    assert run(["enqueue", "mail", "--scheduled-at", when]) == 0

    sent = json.loads(playback.asked[-1].body)["scheduled_at"]
    assert sent == expected or (expected is None and sent > "2026")


def test_flags_are_not_kept_for_the_next_command() -> None:
    run(["queues", "--api-key", "x", "--output", "json"])
    run(["queues"])

    assert requests._connection.get() == requests.Connection()
    assert requests._is_json.get() is False
