"""`corvo bulk`: what each command asks, when it asks first, how it waits, and what it prints."""

import io
import sys
from typing import Any

import msgspec
import pytest

from corvo.cli.commands import bulk
from corvo.cli.commands.bulk import IDS_MAX
from corvo.cli.main import run
from corvo.model import limits
from corvo.ops.bulk.begin_bulk import BulkDone, BulkStarted, SampleJob
from corvo.queries.bulk_view import BulkView, FailureView
from tests.cli.answers import ID, NOON, Terminal, a_search_answer, a_summary
from tests.client.playback import Playback

BULK = "bulk_18a1f0c2d3e4f5a60a1b2c3d4e"
ID_2 = "s02_job_01hzy3v7k2m4n6p8q0r2s4t6v9"
REFUSED = FailureView(ID, "WRONG_STATE", "it is \x1b[31mactive")
DONE = BulkDone(affected=3, errors=1, duration_ms=1.5, matched=4, error_samples=[REFUSED])
PREVIEW = BulkDone(
    affected=0,
    errors=0,
    duration_ms=1.5,
    matched=12,
    dry_run=True,
    sample=[SampleJob(ID, "mail", "dead", 2, 3, NOON)],
)
STARTED = BulkStarted(BULK, "queued", 20_000, f"/api/v1/bulk/{BULK}/progress")


def a_view(status: str = "running", **values: Any) -> BulkView:
    fixed = {"id": BULK, "action": "retry", "total": 20_000, "total_is_exact": True, "processed": 5_000}
    counts = {"affected": 4_999, "errors": 1, "rate": 1_000.0, "eta_s": 15.0, "error_samples": [REFUSED]}
    return BulkView(**{**fixed, **counts, "status": status, "created_at": NOON, "updated_at": NOON, **values})


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(bulk, "LOOK_AGAIN_S", 0.0)


def bodies(playback: Playback) -> list[Any]:
    return [msgspec.json.decode(asked.body) for asked in playback.asked if asked.path == "/api/v1/jobs/bulk"]


COMMANDS = ["retry", "requeue", "delete", "cancel", "move", "priority", "hold", "approve", "reject", "status", "list"]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bulk", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo bulk {command}" in shown


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["retry"], {"action": "retry"}),
        (["requeue"], {"action": "requeue"}),
        (["delete"], {"action": "delete"}),
        (["cancel", "--grace", "5s"], {"action": "cancel", "grace": "5s"}),
        (["move", "slow"], {"action": "move", "move_to_queue": "slow"}),
        (
            ["move", "slow", "--reset-attempts", "--normal-priority"],
            {"action": "move", "move_to_queue": "slow", "reset_attempts": True, "keep_priority": False},
        ),
        (["priority", "high"], {"action": "change_priority", "priority": "high"}),
        (["hold", "--reason", "why"], {"action": "hold", "reason": "why"}),
        (["approve"], {"action": "approve"}),
        (["reject", "--reason", "why"], {"action": "reject", "reason": "why"}),
    ],
)
def test_each_action_sends_what_belongs_to_it_and_which_jobs(
    playback: Playback, capsys: pytest.CaptureFixture[str], arguments: list[str], body: dict[str, Any]
) -> None:
    playback.answer("POST", "/jobs/bulk", DONE)

    assert run(["bulk", *arguments, "--queue", "mail", "--state", "dead", "--state", "held", "--yes"]) == 0

    assert bodies(playback) == [{**body, "filter": {"queue": "mail", "state": ["dead", "held"]}}]
    shown = capsys.readouterr().out
    assert "3 of 4 jobs changed, 1 refused" in shown
    assert ID in shown and "\x1b" not in shown


def test_a_filter_as_json_and_flags_are_one_filter(playback: Playback) -> None:
    playback.answer("POST", "/jobs/bulk", DONE)

    wanted = '{"queue": "mail", "batch_id": "b"}'
    assert run(["bulk", "retry", "--filter", wanted, "--created-after", "2026-01-01"]) == 0

    assert bodies(playback)[0]["filter"] == {"queue": "mail", "batch_id": "b", "created_after": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "piped",
    [
        msgspec.json.encode(a_search_answer(a_summary(), a_summary(id=ID_2))).decode(),
        "".join(msgspec.json.encode(a_summary(id=name)).decode() + "\n" for name in (ID, ID_2)),
        f'["{ID}", "{ID_2}", "{ID}"]',
        f"{ID}\n{ID_2}\n",
        f"ID    QUEUE\n{ID}  mail  dead  {ID_2}\n{ID_2}  mail\n2 of 2 jobs, 1.5 ms\n",
    ],
)
def test_ids_come_through_a_pipe(playback: Playback, monkeypatch: pytest.MonkeyPatch, piped: str) -> None:
    playback.answer("POST", "/jobs/bulk", DONE)
    monkeypatch.setattr(sys, "stdin", io.StringIO(piped))

    assert run(["bulk", "retry"]) == 0

    assert bodies(playback) == [{"action": "retry", "job_ids": [ID, ID_2]}]


@pytest.mark.parametrize("piped", ["", "[]\n", '{"jobs": []}', "ID  QUEUE\n0 of 0 jobs\n"])
def test_a_list_without_a_job_is_an_error(
    playback: Playback, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], piped: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(piped))

    assert run(["bulk", "delete"]) == 1

    assert capsys.readouterr().err == "corvo: no job id on standard input; nothing was changed\n"
    assert playback.asked == []


def test_more_ids_than_a_request_takes_are_several_requests(
    playback: Playback, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bulk, "IDS_MAX", 2)
    for matched, refused in ((2, 1), (1, 0)):
        outcome = BulkDone(matched - refused, refused, 1.0, matched, error_codes={"WRONG_STATE": refused})
        playback.answer("POST", "/jobs/bulk", outcome)
    ids = [f"{ID[:-1]}{digit}" for digit in "123"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(ids)))

    assert run(["bulk", "retry", "--output", "json"]) == 0

    assert [body["job_ids"] for body in bodies(playback)] == [ids[:2], ids[2:]]
    total = msgspec.json.decode(capsys.readouterr().out, type=BulkDone)
    assert (total.affected, total.errors, total.matched, total.error_codes) == (2, 1, 3, {"WRONG_STATE": 1})
    assert limits.BULK_AT_ONCE_MAX == 10_000 == IDS_MAX


@pytest.mark.parametrize("is_operation", [False, True])
def test_when_every_job_was_refused_the_exit_code_says_so(
    playback: Playback, capsys: pytest.CaptureFixture[str], is_operation: bool
) -> None:
    if is_operation:
        playback.answer("POST", "/jobs/bulk", STARTED, 202)
        playback.answer("GET", f"/bulk/{BULK}", a_view("completed", affected=0, errors=5, finished_at=NOON))
    else:
        playback.answer("POST", "/jobs/bulk", BulkDone(0, 5, 1.0, 5))

    assert run(["bulk", "approve", "--queue", "mail"]) == 1


@pytest.mark.parametrize("action", ["delete", "cancel", "reject"])
@pytest.mark.parametrize("selected", [["--queue", "mail"], ["--filter", '{"queue": "mail"}']])
def test_without_a_terminal_what_ends_jobs_needs_yes(
    playback: Playback, capsys: pytest.CaptureFixture[str], action: str, selected: list[str]
) -> None:
    assert run(["bulk", action, *selected]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert "no terminal" in line and "--yes" in line
    assert playback.asked == []


@pytest.mark.parametrize("action", ["delete", "cancel", "reject"])
def test_ids_on_standard_input_name_the_jobs_and_need_no_yes(
    playback: Playback, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    playback.answer("POST", "/jobs/bulk", DONE)
    monkeypatch.setattr(sys, "stdin", io.StringIO(ID))

    assert run(["bulk", action]) == 0

    assert bodies(playback) == [{"action": action, "job_ids": [ID]}]


@pytest.mark.parametrize(
    ("arguments", "piped", "told"),
    [
        (["retry", "--filter", "{queue: mail}"], "", "--filter is not JSON"),
        (["retry", "--filter", "[]"], "", "--filter is no object"),
        (["retry", "--filter", '{"nonsense": 1}'], "", "nonsense"),
        (["retry"], "5", "no job id: 5"),
        (["retry"], "[5]", "no job id: 5"),
        (["retry", "--created-after", "soon"], "", "--created-after soon"),
        (["cancel", ID], "", f"corvo cancel {ID}"),
        (["move"], "", "QUEUE"),
        (["priority", "urgent", "--queue", "mail"], "", "urgent"),
    ],
)
def test_wrong_usage_asks_nobody(
    playback: Playback,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    piped: str,
    told: str,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(piped))

    assert run(["bulk", *arguments]) == 2

    assert told in capsys.readouterr().err
    assert playback.asked == []


def test_a_terminal_is_asked_for_the_jobs_that_are_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())

    assert run(["bulk", "delete"]) == 2

    assert "no jobs selected" in capsys.readouterr().err


@pytest.mark.parametrize(("said", "code", "asked"), [("y\n", 0, 2), ("n\n", 1, 1)])
def test_on_a_terminal_it_counts_and_asks_first(
    playback: Playback,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    said: str,
    code: int,
    asked: int,
) -> None:
    playback.answer("POST", "/jobs/bulk", PREVIEW)
    playback.answer("POST", "/jobs/bulk", DONE)
    monkeypatch.setattr(sys, "stdin", Terminal(said))

    assert run(["bulk", "delete", "--queue", "mail"]) == code

    shown = capsys.readouterr()
    assert "delete 12 jobs?" in shown.err
    sent = bodies(playback)
    assert (len(sent), sent[0]["dry_run"]) == (asked, True)
    assert "dry_run" not in sent[-1] or code == 1


def test_with_yes_it_does_not_ask(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    playback.answer("POST", "/jobs/bulk", DONE)
    monkeypatch.setattr(sys, "stdin", Terminal())

    assert run(["bulk", "delete", "--queue", "mail", "--yes"]) == 0

    assert len(bodies(playback)) == 1


def test_a_dry_run_shows_a_few_and_sends_nothing_else(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/jobs/bulk", PREVIEW)

    assert run(["bulk", "delete", "--queue", "mail", "--dry-run"]) == 0

    shown = capsys.readouterr().out
    assert ID in shown and "12 jobs match; nothing was changed" in shown
    assert [body["dry_run"] for body in bodies(playback)] == [True]


def test_an_operation_is_watched_to_its_end(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/jobs/bulk", STARTED, 202)
    for view in (a_view(), a_view(processed=10_000), a_view("completed", processed=20_000, finished_at=NOON)):
        playback.answer("GET", f"/bulk/{BULK}", view)

    assert run(["bulk", "retry", "--queue", "mail"]) == 0

    shown = capsys.readouterr().out
    assert "completed" in shown and "20000 of 20000" in shown
    assert len(playback.asked) == 4


def test_one_that_failed_ends_with_1(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/jobs/bulk", STARTED, 202)
    playback.answer("GET", f"/bulk/{BULK}", a_view("failed", finished_at=NOON, error="no search"))

    assert run(["bulk", "retry", "--queue", "mail"]) == 1

    assert "no search" in capsys.readouterr().out


def test_with_async_it_prints_the_id_and_does_not_wait(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/jobs/bulk", STARTED, 202)

    assert run(["bulk", "retry", "--queue", "mail", "--async"]) == 0

    assert capsys.readouterr().out == f"{BULK}  queued\n"
    assert bodies(playback)[0]["async"] is True


def test_status_list_and_cancel(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", f"/bulk/{BULK}", a_view())
    playback.answer("GET", "/bulk", [a_view(), a_view("completed", total_is_exact=False)])
    playback.answer("POST", f"/bulk/{BULK}/cancel", a_view(cancel_requested=True))

    assert run(["bulk", "status", BULK]) == 0
    shown = capsys.readouterr().out
    rows = {line[:11].strip(): line[11:].strip() for line in shown.splitlines()}
    assert (rows["status"], rows["processed"], rows["rate"], rows["time left"]) == (
        "running",
        "5000 of 20000",
        "1000 jobs/s",
        "15 s",
    )
    assert "\x1b" not in shown
    assert run(["bulk", "list"]) == 0
    assert "≥ 20000" in capsys.readouterr().out
    assert run(["bulk", "cancel", BULK]) == 0
    assert "requested" in capsys.readouterr().out


def test_json_is_the_answer_itself(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/jobs/bulk", DONE)
    playback.answer("GET", f"/bulk/{BULK}", a_view())
    playback.answer("GET", "/bulk", [a_view()])

    for arguments, expected in (
        (["retry", "--queue", "mail"], DONE),
        (["status", BULK], a_view()),
        (["list"], [a_view()]),
    ):
        assert run(["bulk", *arguments, "--output", "json"]) == 0
        kind: Any = list[BulkView] if isinstance(expected, list) else type(expected)
        assert msgspec.json.decode(capsys.readouterr().out, type=kind) == expected
