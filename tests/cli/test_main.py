"""Each command against a server that plays back answers: what it asks, what it prints, how it ends."""

import io
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from corvo import __version__
from corvo.cli import main
from corvo.cli.commands.requests import PriorityName
from corvo.cli.main import run
from corvo.ops.jobs.enqueue import EnqueueBody, Enqueued
from tests.cli.answers import ID, a_status, prepare
from tests.client.playback import Playback, playing

COMMANDS = [
    "server",
    "config",
    "local",
    "enqueue",
    "inspect",
    "search",
    "queues",
    "status",
    "workers",
    "top",
    "version",
]


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)
    prepare(playback)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo {command}" in shown


def test_enqueue_sends_what_was_asked(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/enqueue", Enqueued(ID, "scheduled"), 201)
    options = ["--priority", "high", "--max-retries", "5", "--scheduled-at", "2030-01-01T00:00:00Z"]

    assert run(["enqueue", "mail", '{"n": 1.10}', *options, "--tag", "a=b", "--tag", "c=d=e"]) == 0

    body = msgspec.json.decode(playback.asked[0].body, type=EnqueueBody)
    assert (body.queue, body.priority, body.max_retries) == ("mail", "high", 5)
    assert body.scheduled_at == "2030-01-01T00:00:00Z"
    assert bytes(body.payload) == b'{"n": 1.10}'  # to the byte
    assert msgspec.json.decode(body.tags) == {"a": "b", "c": "d=e"}
    assert capsys.readouterr().out.split() == [ID, "scheduled"]


def test_enqueue_sends_the_conditions_that_were_named(playback: Playback) -> None:
    playback.answer("POST", "/enqueue", Enqueued(ID, "scheduled"), 201)
    times = ["--delay", "10m", "--expire-after", "1h"]
    keys = ["--unique-key", "k", "--unique-period", "60", "--unique-until", "start", "--idempotency-key", "i"]
    ties = ["--depends-on", ID, "--depends-on", "other", "--on-dependency-failure", "run", "--batch", "b"]

    assert run(["enqueue", "mail", *times, *keys, *ties]) == 0

    assert msgspec.json.decode(playback.asked[0].body) == {
        "queue": "mail",
        "payload": {},
        "delay": "10m",
        "expire_after": "1h",
        "unique_key": "k",
        "unique_period": 60,
        "unique_until": "start",
        "idempotency_key": "i",
        "depends_on": [ID, "other"],
        "on_dependency_failure": "run",
        "batch_id": "b",
    }


def test_enqueue_reads_the_payload_from_standard_input(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    playback.answer("POST", "/enqueue", Enqueued(ID, "pending"), 201)
    monkeypatch.setattr(sys, "stdin", io.StringIO("[1, 2]\n"))

    assert run(["enqueue", "mail", "-"]) == 0

    assert playback.asked[0].body == b'{"queue":"mail","payload":[1, 2]}'


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["enqueue", "mail", "{nonsense"], "not JSON"),
        (["enqueue", "mail", "{}", "--tag", "novalue"], "key=value"),
        (["enqueue", "mail", "{}", "--priority", "urgent"], "--priority"),
        (["enqueue"], "queue"),
        (["search", "--state", "asleep"], "--state"),
        (["search", "--limit", "0"], "--limit"),
        (["queues", "--output", "xml"], "--output"),
        (["queues", "--server", "ftp://x"], "no address"),
        (["nonsense"], "nonsense"),
        (["queues", "--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], words: str, playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("corvo: ") and words in lines[0]
    assert playback.asked == []


def test_a_refusal_is_one_line_with_its_code_and_exit_code_1(
    playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    playback.refuse("GET", "/jobs/nope", 404, "JOB_NOT_FOUND", "no job has the id 'nope'")

    assert run(["inspect", "nope"]) == 1

    assert capsys.readouterr().err == "corvo: no job has the id 'nope' (JOB_NOT_FOUND)\n"


def test_a_server_that_is_away_is_one_line_that_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert run(["status", "--server", f"http://127.0.0.1:{taken.getsockname()[1]}"]) == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert "nothing answers" in line and "corvo server" in line and "CORVO_SERVER" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspect", ID], ["mail", "dead", "3 of 3", '{"to":"ada"}', "boom"]),
        (["search"], [ID, "1 of 1 jobs"]),
        (["queues"], ["mail", "5", "7"]),
        (["status"], ["fsync on", "node-1", "11.1", "0.42"]),
        (["workers"], ["w1", "host-a", "2026-01-31 12:00:00Z"]),
    ],
)
def test_tables_hold_what_the_server_said(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 0

    shown = capsys.readouterr().out
    assert all(word in shown for word in words) and "\x1b" not in shown


def test_status_shows_queues_and_shards(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status"]) == 0
    shown = capsys.readouterr().out
    assert "mail" in shown and "PENDING" in shown and "SHARD" in shown

    assert run(["status", "--output", "json"]) == 0
    assert [queue["name"] for queue in msgspec.json.decode(capsys.readouterr().out)["queues"]] == ["mail"]


def test_status_shows_the_health_while_queues_cannot_be_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with playing() as other:
        other.answer("GET", "/cluster/status", a_status())
        other.refuse("GET", "/queues", 400, "READ_DB_UNAVAILABLE", "read.db is being rebuilt")
        assert run(["status", "--server", other.url]) == 0

    shown = capsys.readouterr().out
    assert "Corvo 0.1.0 healthy" in shown and "the queues cannot be listed: read.db is being rebuilt" in shown


def test_json_is_the_answer_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--output", "json"]) == 0

    assert msgspec.json.decode(capsys.readouterr().out, type=type(a_status())) == a_status()


def test_the_choices_are_those_of_the_core() -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(EnqueueBody)}

    words, _number = get_args(fields["priority"])
    assert get_args(PriorityName) == (*get_args(words), "low")
    assert get_args(main.UntilName) == get_args(get_args(fields["unique_until"])[0])
    assert get_args(main.PolicyName) == get_args(get_args(fields["on_dependency_failure"])[0])


def test_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == 0

    assert capsys.readouterr().out == f"corvo {__version__}\n"


@pytest.mark.system
def test_help_loads_nothing_heavy() -> None:
    heavy = ["httpx", "rich.table", "supervisor", "structlog", "corvo.ops", "corvo.queries"]
    code = (
        f"import sys; from corvo.cli.main import run; run(['--help']); print([m for m in {heavy} if m in sys.modules])"
    )

    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(main.__file__).parents[2])},
    ).stdout

    assert shown.splitlines()[-1] == "[]"


@pytest.mark.system
def test_a_request_loads_no_other_command_line() -> None:
    code = (
        "import atexit, sys; sys.argv = ['corvo', 'queues', '--server', 'http://127.0.0.1:9'];"
        " atexit.register(lambda: print([name for name in ('click', 'pygments') if name in sys.modules]));"
        " from corvo.cli.main import main; main()"
    )

    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(main.__file__).parents[2])},
    )

    assert shown.stdout.splitlines()[-1] == "[]", shown.stderr


def test_one_command_is_built_alone_and_the_rest_for_everything_else() -> None:
    def built(*arguments: str) -> int:
        app = main._app_for(list(arguments))
        return len(app.registered_commands) + len(app.registered_groups)

    assert built("queues") == built("bulk", "retry") == 1
    assert built() == built("--help") == built("quues") == built("--version") > 20
