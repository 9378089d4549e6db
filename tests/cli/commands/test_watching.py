"""`--watch`: again and again, on the screen of a terminal or one after the other."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corvo.cli import main
from corvo.cli.main import run
from tests.cli.answers import a_queue, prepare
from tests.client.playback import Playback
from tests.support.waiting import eventually

ALL = [
    ["queues"],
    ["workers"],
    ["status"],
    ["search"],
    ["dead"],
    ["held"],
    ["errors"],
    ["throughput"],
    ["schedules", "list"],
    ["bulk", "list"],
    ["cluster", "status"],
    ["keys", "list"],
    ["audit", "list"],
]


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)
    prepare(playback)


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_every_list_can_be_watched(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0

    assert "--watch" in capsys.readouterr().out


def test_answers_follow_each_other_where_there_is_no_terminal(
    playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["queues", "--watch", "-n", "3", "--interval", "0.2", "-o", "ndjson"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["mail"] * 3
    assert len(playback.asked) == 3


def test_an_error_ends_it_where_there_is_no_terminal(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.refuse("GET", "/queues", 400, "NO", "not now")

    assert run(["queues", "--watch", "--interval", "0.2"]) == 1

    assert "not now" in capsys.readouterr().err


@pytest.mark.system
def test_a_terminal_shows_the_newest_and_marks_what_is_stale(playback: Playback, tmp_path: Path) -> None:
    playback.refuse("GET", "/queues", 400, "NO", "not now")
    playback.answer("GET", "/queues", [a_queue("post")])
    ours, theirs = pty.openpty()
    shown = b""

    def read(word: bytes) -> bool:
        nonlocal shown
        shown += os.read(ours, 65536)
        return word in shown

    process = subprocess.Popen(
        [sys.executable, "-m", "corvo.cli.main", "queues", "--watch", "--interval", "0.2"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(Path(main.__file__).parents[2]), "TERM": "xterm", "COLUMNS": "120"},
    )
    try:
        eventually(lambda: read(b"post"), within_s=20)
        process.send_signal(signal.SIGTERM)
        eventually(lambda: read(b"\x1b[?1049l"), within_s=20)  # the terminal as it was
        assert process.wait(20) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        os.close(ours)

    assert shown.index(b"mail") < shown.index(b"stale at") < shown.index(b"post")
    assert b"not now" in shown
