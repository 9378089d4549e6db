"""`corvo batch`: what each command asks, and what it prints."""

import msgspec
import pytest

from corvo.cli.main import run
from corvo.ops.batches.add_to_batch import BatchBody, BatchMade
from corvo.ops.batches.seal_batch import Sealed
from corvo.queries.batches import BatchView, CallbackView
from tests.cli.answers import ID, NOON
from tests.client.playback import Playback

BATCH = "s01_batch_01hzy3v7k2m4n6p8q0r2s4t6v8"
VIEW = BatchView(
    BATCH,
    "completed",
    4,
    0,
    2,
    1,
    1,
    0,
    NOON,
    NOON,
    "an \x1b[31malbum",
    CallbackView("done", {"album": 42}, ID),
    CallbackView("well", {}),
)


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


@pytest.mark.parametrize("command", ["create", "seal", "show"])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["batch", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo batch {command}" in shown


def test_create_sends_the_callbacks_and_prints_the_id(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/batch", BatchMade(BATCH), 201)

    arguments = ["--on-complete", "done", "--on-failure", "ill", "--payload", '{"n": 1}', "--description", "an album"]
    assert run(["batch", "create", *arguments]) == 0

    sent = msgspec.json.decode(playback.asked[0].body)
    steps = {"on_complete": {"queue": "done", "payload": {"n": 1}}, "on_failure": {"queue": "ill", "payload": {"n": 1}}}
    assert sent == {**steps, "description": "an album"}
    assert msgspec.json.decode(playback.asked[0].body, type=BatchBody).on_success is None
    assert capsys.readouterr().out == f"{BATCH}\n"


def test_a_payload_that_is_no_json_is_wrong_usage(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["batch", "create", "--on-complete", "done", "--payload", "{n: 1}"]) == 2

    assert "the payload is not JSON" in capsys.readouterr().err
    assert playback.asked == []


def test_seal_says_so(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", f"/batches/{BATCH}/seal", Sealed("sealed"))

    assert run(["batch", "seal", BATCH]) == 0

    assert capsys.readouterr().out == f"{BATCH}  sealed\n"


def test_show_prints_counts_and_callbacks_and_no_escape_sequence(
    playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    playback.answer("GET", f"/batches/{BATCH}", VIEW)

    assert run(["batch", "show", BATCH]) == 0

    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    rows = {line[:13].strip(): line[13:].strip() for line in shown.splitlines()}
    assert (rows["id"], rows["state"], rows["jobs"]) == (BATCH, "completed", "4")
    assert [rows[name] for name in ("pending", "completed", "dead", "cancelled", "deleted")] == [
        "0",
        "2",
        "1",
        "1",
        "0",
    ]
    assert rows["on complete"] == f'done  {{"album":42}}  {ID}'
    assert rows["on success"] == "well  {}"
    assert "on failure" not in rows


def test_json_is_the_answer_itself(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/batch", BatchMade(BATCH), 201)
    playback.answer("POST", f"/batches/{BATCH}/seal", Sealed("sealed"))
    playback.answer("GET", f"/batches/{BATCH}", VIEW)

    for arguments, expected in (
        (["create"], BatchMade(BATCH)),
        (["seal", BATCH], Sealed("sealed")),
        (["show", BATCH], VIEW),
    ):
        assert run(["batch", *arguments, "--output", "json"]) == 0
        assert msgspec.json.decode(capsys.readouterr().out, type=type(expected)) == expected


def test_an_unknown_batch_is_one_line_and_exit_code_1(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.refuse("GET", f"/batches/{BATCH}", 404, "BATCH_NOT_FOUND", "no batch has the id 'x'")

    assert run(["batch", "show", BATCH]) == 1

    assert capsys.readouterr().err == "corvo: no batch has the id 'x' (BATCH_NOT_FOUND)\n"
