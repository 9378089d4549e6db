"""`corvo top`: the view that survives its server, the forms for scripts, and a session in a terminal."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from corvo.cli.commands.top import Report, View
from corvo.cli.main import run
from corvo.client.http import Client
from tests.cli.answers import a_queue, prepare
from tests.cli.nodes import ROOT, await_
from tests.client.playback import Playback, playing


def text_of(view: View) -> str:
    screen = Console(width=80, height=24, color_system=None)
    with screen.capture() as captured:
        screen.print(view.draw((80, 24)))
    return captured.get()


def test_a_restart_of_the_server_is_a_mark_not_an_end() -> None:
    with playing() as server:
        prepare(server)
        view = View(Client(server.url, timeout_s=1, deadline_s=0), 1.0)
        view.look()
        assert "mail" in text_of(view) and "STALE" not in text_of(view)

        server.refuse("GET", "/queues", 503, "DRAINING", "the server is going down")
        view.look()
        view.look()
        assert "STALE" in text_of(view) and "going down, retrying" in text_of(view) and "mail" in text_of(view)

        server.answer("GET", "/queues", [a_queue("other")])
        view.look()
        view.look()
        assert "STALE" not in text_of(view) and "other" in text_of(view)


def test_a_server_that_was_never_there_is_said_and_tried_again() -> None:
    with playing() as server:
        view = View(Client(server.url, timeout_s=1, deadline_s=0), 1.0)
        view.look()

    assert "nothing prepared" in text_of(view) and "trying again" in text_of(view)


def test_keys_change_the_view() -> None:
    view = View(Client("http://localhost"), 1.0)

    for key, interval in (("+", 2.0), ("+", 5.0), ("-", 2.0), ("-", 1.0), ("-", 0.5), ("-", 0.2), ("-", 0.2)):
        view.press(key)
        assert view.interval_s == interval
    view.press("p")
    assert (view.is_frozen, view.is_over) == (True, False)
    for key in "px":
        view.press(key)
    assert (view.is_frozen, view.is_over) == (False, False)
    view.press("q")
    assert (view.is_frozen, view.is_over) == (False, True)


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
def test_a_session_in_a_terminal_leaves_it_as_it_was(playback: Playback) -> None:
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
        os.write(master, b"q")
        await_(lambda: sees(b"\x1b[?1049l"))  # back from the alternate screen
        assert handle.wait(10) == 0
        assert termios.tcgetattr(slave) == modes
    finally:
        if handle.poll() is None:
            handle.kill()
            handle.wait()
        os.close(master)
        os.close(slave)
