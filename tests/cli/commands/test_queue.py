"""`corvo queue`: what each command asks, and what it prints."""

import io
import re

import msgspec
import pytest
from rich.console import Console, RenderableType

from corvo.cli.commands import queue as module
from corvo.cli.main import run
from corvo.cli.screen import show, show_queue
from corvo.ops.queues.clear_queue import QueueCleared
from corvo.ops.queues.control import QueueChanged
from corvo.ops.queues.drain_queue import QueueDraining
from corvo.queries.queue import QueueDetail, RetentionView
from tests.cli.answers import NOON, Terminal, a_queue
from tests.client.playback import Playback

COUNTS = dict.fromkeys(("pending", "active", "held", "completed", "dead", "scheduled", "retrying", "cancelled"), 0)


def a_detail(**values: object) -> QueueDetail:
    fixed = {"name": "mail", "status": "active", "paused": False, "draining": False, "created_at": NOON, **COUNTS}
    totals = {"enqueued": 9, "completed_total": 4, "failed": 1, "left": 5}
    retention = RetentionView(3_600_000, None, 604_800_000)
    return QueueDetail(**{**fixed, **totals, "retention": retention, **values})  # type: ignore[arg-type]


def drawn(content: RenderableType) -> dict[str, str]:
    shown = io.StringIO()
    Console(file=shown, width=200, color_system=None).print(content)
    lines = [re.fullmatch(r"(\w+(?: pending)?) +(.*?) *", line) for line in shown.getvalue().splitlines()]
    return {line[1]: line[2] for line in lines if line is not None}


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


@pytest.mark.parametrize(
    "command",
    ["show", "pause", "resume", "drain", "clear", "delete", "concurrency", "throttle", "retention"],
)
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["queue", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo queue {command}" in shown


@pytest.mark.parametrize("command", ["pause", "resume", "drain", "clear"])
def test_what_is_typed_in_a_hurry_is_at_the_top_too(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0

    assert f"  corvo {command}" in capsys.readouterr().out


@pytest.mark.parametrize("prefix", [[], ["queue"]])
@pytest.mark.parametrize(("command", "status"), [("pause", "paused"), ("resume", "resumed")])
def test_a_queue_is_stopped_and_started(
    playback: Playback, capsys: pytest.CaptureFixture[str], prefix: list[str], command: str, status: str
) -> None:
    playback.answer("POST", f"/queues/a%2Fb/{command}", QueueChanged(status))

    assert run([*prefix, command, "a/b"]) == 0
    assert capsys.readouterr().out.split() == ["a/b", status]
    assert run([*prefix, command, "a/b", "--output", "json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out) == {"status": status}


def test_a_drain_that_does_not_wait_says_what_is_active(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/queues/mail/drain", QueueDraining("draining", 2))

    assert run(["drain", "mail", "--no-wait"]) == 0
    assert capsys.readouterr().out.strip() == "mail  draining, 2 still active"


def test_a_drain_waits_until_no_job_runs(
    playback: Playback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_AGAIN_S", 0)
    playback.answer("POST", "/queues/mail/drain", QueueDraining("draining", 2))
    for active in (2, 1, 0):
        playback.answer("GET", "/queues/mail", a_detail(draining=True, active=active))

    assert run(["drain", "mail", "--output", "json"]) == 0
    shown = capsys.readouterr()
    assert msgspec.json.decode(shown.out) == {"status": "drained", "active": 0}
    assert shown.err.splitlines() == ["corvo: 2 jobs still running", "corvo: 1 jobs still running"]


def test_a_drain_gives_up_after_its_timeout(
    playback: Playback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_AGAIN_S", 0)
    playback.answer("POST", "/queues/mail/drain", QueueDraining("draining", 2))
    playback.answer("GET", "/queues/mail", a_detail(draining=True, active=2))

    assert run(["drain", "mail", "--timeout", "10ms"]) == 1
    shown = capsys.readouterr()
    assert shown.out.strip() == "mail  draining, 2 still active"
    assert "2 jobs of mail still run after 10ms; the queue stays paused" in shown.err
    assert run(["drain", "mail", "--timeout", "soon"]) == 2


def test_a_drain_that_somebody_ends_is_told(
    playback: Playback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_AGAIN_S", 0)
    playback.answer("POST", "/queues/mail/drain", QueueDraining("draining", 2))
    playback.answer("GET", "/queues/mail", a_detail(active=2))

    assert run(["drain", "mail", "--wait"]) == 1
    assert "the drain of mail was ended by another command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "method", "path"),
    [
        (["clear", "mail"], "POST", "/queues/mail/clear"),
        (["queue", "clear", "mail"], "POST", "/queues/mail/clear"),
        (["queue", "delete", "mail"], "DELETE", "/queues/mail?confirm=true"),
        (["queue", "delete", "mail", "--force"], "DELETE", "/queues/mail?confirm=true&force=true"),
        (["destroy", "mail"], "DELETE", "/queues/mail?confirm=true"),
    ],
)
def test_what_destroys_asks_first(
    playback: Playback,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    method: str,
    path: str,
) -> None:
    playback.answer(method, path, QueueCleared("cleared", 7) if "clear" in arguments else QueueChanged("deleted"))
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert run(arguments) == 1
    assert "nothing was changed" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no terminal" in line and "--yes" in line
    assert playback.asked == []

    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    for sure in ([], ["--yes"], ["--confirm"]):
        assert run([*arguments, *sure]) == 0
        assert capsys.readouterr().out.strip() in ("mail  cleared, 7 jobs deleted", "mail  deleted")
    assert [(asked.method, asked.path) for asked in playback.asked] == [(method, "/api/v1" + path)] * 3


@pytest.mark.parametrize(
    ("arguments", "method", "path", "body"),
    [
        (["concurrency", "mail", "5"], "POST", "/concurrency", {"max": 5}),
        (["concurrency", "mail", "0"], "POST", "/concurrency", {"max": 0}),
        (["throttle", "mail", "100", "--per", "1m"], "POST", "/throttle", {"rate": 100, "window_ms": 60_000}),
        (["throttle", "mail", "--off"], "DELETE", "/throttle", None),
        (["retention", "mail", "--dead", "forever"], "POST", "/retention", {"dead": "forever"}),
        (
            ["retention", "mail", "--completed", "1h", "--cancelled", "default"],
            "POST",
            "/retention",
            {"completed": "1h", "cancelled": None},
        ),
    ],
)
def test_limits_are_sent_as_they_were_typed(
    playback: Playback, arguments: list[str], method: str, path: str, body: object
) -> None:
    playback.answer(method, f"/queues/mail{path}", QueueChanged("ok"))

    assert run(["queue", *arguments]) == 0
    [asked] = playback.asked
    assert asked.method == method
    assert (msgspec.json.decode(asked.body) if asked.body else None) == body


@pytest.mark.parametrize(
    "arguments",
    [["throttle", "mail"], ["throttle", "mail", "5", "--off"], ["throttle", "mail", "5", "--per", "soon"]],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["queue", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_refusal_is_one_line_and_exit_code_1(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.refuse("GET", "/queues/mial", 404, "QUEUE_NOT_FOUND", "no queue is called 'mial'")

    assert run(["queue", "show", "mial"]) == 1
    assert capsys.readouterr().err == "corvo: no queue is called 'mial' (QUEUE_NOT_FOUND)\n"


def test_one_queue_is_shown_with_everything(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    detail = a_detail(
        status="paused", pending=3, active=2, max_concurrency=5, rate_limit=10, rate_window_ms=90_000, rate_room=4
    )
    playback.answer("GET", "/queues/mail", detail)

    assert run(["queue", "show", "mail", "-o", "json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=QueueDetail) == detail

    shown = drawn(show_queue.queue(detail))
    assert shown["status"] == "paused" and shown["pending"] == "3"
    assert shown["concurrency"] == "2 of 5"
    assert shown["throttle"] == "10 per 90s, 4 left now"
    assert shown["kept"] == "completed 1h, dead forever, cancelled 7d"


def test_a_full_window_says_until_when() -> None:
    detail = a_detail(rate_limit=1, rate_window_ms=1_500, rate_room=0, rate_room_at=NOON, oldest_pending_age_ms=2_500)

    shown = drawn(show_queue.queue(detail))
    assert shown["throttle"] == "1 per 1500ms, none left until 2026-01-31 12:00:00Z"
    assert shown["oldest pending"] == "2.5 s"
    assert "concurrency" not in shown


def test_the_list_says_which_queues_give_out_nothing() -> None:
    rows = [a_queue("a"), a_queue("b", status="draining"), a_queue("c", status="paused")]

    shown = io.StringIO()
    Console(file=shown, width=200, color_system=None).print(show.queues(rows))
    assert [line.split("  ")[0] for line in shown.getvalue().splitlines()[1:]] == ["a", "b (draining)", "c (paused)"]
