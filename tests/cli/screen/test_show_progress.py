"""A bar at a terminal, nothing elsewhere."""

import sys

import pytest

from corvo.cli.screen.show_progress import counting
from tests.cli.answers import Terminal


@pytest.mark.parametrize("total", [2, None])
def test_a_terminal_shows_how_much_is_done(total: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")

    with counting("example jobs", total) as tell:
        tell()
        tell()

    assert "example jobs" in screen.getvalue() and "2/" in screen.getvalue()


def test_a_pipe_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with counting("example jobs", 2) as tell:
        tell()

    shown = capsys.readouterr()
    assert (shown.out, shown.err.strip()) == ("", "")
