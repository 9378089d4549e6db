"""`corvo top`: where it begins, the forms for scripts, and a session in a terminal."""

import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import msgspec
import pytest
import typer

from corvo.cli.commands.top import Report, session_of
from corvo.cli.main import run
from tests.cli.answers import ID, a_queue, prepare
from tests.cli.nodes import ROOT, await_
from tests.client.playback import Playback


def test_it_begins_where_the_flags_say() -> None:
    session = session_of(2.0, True, "failures", "queue=mail", ID)

    assert session.trail() == f"failures queue=mail > job {ID}"
    assert (session.interval_s, session.is_read_only) == (2.0, True)


@pytest.mark.parametrize(("pane", "filter"), [("nowhere", ""), ("quit", ""), ("cancel", ID), ("jobs", "color=red")])
def test_a_wrong_beginning_is_wrong_usage(pane: str, filter: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as stopped:
        session_of(1.0, False, pane, filter, None)

    assert stopped.value.exit_code == 2 and len(capsys.readouterr().err.splitlines()) == 1


def test_other_commands_do_not_load_textual() -> None:
    code = "import sys, corvo.cli.main, corvo.cli.commands.top; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_without_a_terminal_it_prints_one_picture(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(playback)

    assert run(["top", "--server", playback.url, "--interval", "0.2"]) == 0

    shown = capsys.readouterr().out
    assert shown.count("QUEUE ") == 1 and "mail" in shown and "q quit" not in shown and "\x1b" not in shown


def test_json_is_one_line_a_picture(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(playback)
    playback.answer("GET", "/queues", [a_queue(enqueued=10)])
    playback.answer("GET", "/queues", [a_queue(enqueued=20)])

    assert run(["top", "--server", playback.url, "--interval", "0.2", "--json", "-n", "2"]) == 0

    reports = [msgspec.json.decode(line, type=Report) for line in capsys.readouterr().out.splitlines()]
    assert len(reports) == 2
    assert all(report.rates.enqueued > 0 for report in reports)


def test_for_a_script_no_server_is_an_error(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", "--server", playback.url, "--once"]) == 1

    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.system
@pytest.mark.parametrize("number", [0, signal.SIGTERM])
def test_a_session_in_a_terminal_leaves_it_as_it_was(playback: Playback, number: int) -> None:
    prepare(playback)
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    modes = termios.tcgetattr(slave)
    shown = bytearray()
    handle = subprocess.Popen(
        [sys.executable, "-m", "corvo.cli.main", "top", "--interval", "0.2", "--server", playback.url],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=Path("/"),
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
    )
    os.set_blocking(master, False)

    def sees(words: bytes) -> bool:
        try:
            shown.extend(os.read(master, 65536))
        except BlockingIOError:
            pass
        return words in shown

    try:
        await_(lambda: sees(b"mail"))
        os.write(master, b"p")
        await_(lambda: sees(b"FROZEN"))
        if number:
            handle.send_signal(number)
        else:
            os.write(master, b"q")
        await_(lambda: sees(b"\x1b[?1049l"))  # back from the alternate screen
        assert handle.wait(10) == (128 + number if number else 0)
        assert termios.tcgetattr(slave) == modes
    finally:
        if handle.poll() is None:
            handle.kill()
            handle.wait()
        os.close(master)
        os.close(slave)
