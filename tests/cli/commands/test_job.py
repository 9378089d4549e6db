"""`corvo job`: each action asks for what was typed, with and without `job`."""

import msgspec
import pytest

from corvo.cli.commands import job
from corvo.cli.main import run
from corvo.ops.jobs.actions import Done
from corvo.ops.jobs.enqueue import Enqueued
from tests.cli.answers import ID
from tests.client.playback import Playback

# Arguments · what is asked · its body · the word in the answer
ACTIONS = [
    (["retry", ID], f"/jobs/{ID}/retry", b"", "retried"),
    (["requeue", ID], f"/jobs/{ID}/requeue", b"", "requeued"),
    (["cancel", ID], f"/jobs/{ID}/cancel", b"{}", "cancelling"),
    (["cancel", ID, "--grace", "5m"], f"/jobs/{ID}/cancel", b'{"grace":"5m"}', "cancelling"),
    (["hold", ID, "--reason", "why"], f"/jobs/{ID}/hold", b'{"reason":"why"}', "held"),
    (["approve", ID], f"/jobs/{ID}/approve", b"", "pending"),
    (["reject", ID, "--reason", "why"], f"/jobs/{ID}/reject", b'{"reason":"why"}', "dead"),
    (["move", ID, "slow"], f"/jobs/{ID}/move", b'{"queue":"slow"}', "moved"),
    (["priority", ID, "high"], f"/jobs/{ID}/priority", b'{"priority":"high"}', "ok"),
    (["delete", ID], f"/jobs/{ID}", b"", "deleted"),
]
COMMANDS = [command.name or command.callback.__name__ for command in job.app.registered_commands]


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


@pytest.mark.parametrize(("arguments", "path", "body", "status"), ACTIONS)
def test_an_action_is_asked_for_and_its_answer_printed(
    arguments: list[str], path: str, body: bytes, status: str, playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    method = "DELETE" if arguments[0] == "delete" else "POST"
    playback.answer(method, path, Done(status))

    assert run(["job", *arguments]) == 0
    assert run(["job", *arguments, "--output", "json"]) == 0
    assert run(arguments) == 0

    assert {tuple(asked) for asked in playback.asked} == {(method, f"/api/v1{path}", body)}
    table, rest = capsys.readouterr().out.split("\n", 1)
    assert table.split() == [ID, status]
    assert msgspec.json.decode(rest[: rest.index("}") + 1]) == {"status": status}


def test_replay_prints_the_new_job(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", f"/jobs/{ID}/replay", Enqueued("s00_job_new", "pending"), 201)

    assert run(["job", "replay", ID]) == 0

    assert playback.asked[0].body == b'{"from":1}'
    assert capsys.readouterr().out.split() == ["s00_job_new", "pending"]


def test_a_refusal_is_one_line(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.refuse("POST", f"/jobs/{ID}/move", 409, "WRONG_STATE", "cannot move a job that is active")

    assert run(["move", ID, "slow"]) == 1

    assert capsys.readouterr().err == "corvo: cannot move a job that is active (WRONG_STATE)\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_action_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["job", command, "--help"]) == 0
    assert f"  corvo job {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_short_form_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"  corvo {command}" in capsys.readouterr().out


def test_low_and_relative_times_are_translated(playback: Playback) -> None:
    playback.answer("POST", f"/jobs/{ID}/priority", Done("ok"))
    playback.answer("POST", f"/jobs/{ID}/reschedule", Done("scheduled"))

    assert run(["job", "priority", ID, "low"]) == 0
    assert run(["reschedule", ID, "--scheduled-at", "2030-02-10"]) == 0
    assert run(["reschedule", ID, "--scheduled-at", "1h"]) == 0
    assert run(["reschedule", ID, "--scheduled-at", "soon"]) == 2

    bodies = [msgspec.json.decode(asked.body) for asked in playback.asked]
    assert bodies[0] == {"priority": "normal"}
    assert bodies[1] == {"scheduled_at": "2030-02-10T00:00:00Z"}
    assert list(bodies[2]) == ["scheduled_at"] and bodies[2]["scheduled_at"].endswith("Z")
