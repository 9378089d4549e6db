"""Plays: plain-text stories of jobs, told by a real machine.

`REWRITE=1 pytest tests/corvo/test_plays.py` writes the transcripts anew; then read the diff like a play.
"""

import os
from pathlib import Path

import pytest

from tests.support.plays import perform

SCENARIOS = Path(__file__).parents[1] / "scenarios" / "jobs"
PLAYS = sorted(SCENARIOS.glob("*.txt"))


@pytest.mark.parametrize("path", PLAYS, ids=[path.stem for path in PLAYS])
def test_the_play_goes_as_written(path: Path) -> None:
    performed = perform(path.read_text())
    if os.environ.get("REWRITE") == "1":
        path.write_text(performed)

    assert performed == path.read_text(), "if this is meant, run REWRITE=1 pytest tests/corvo/test_plays.py"


def test_there_are_plays() -> None:
    assert len(PLAYS) >= 8


def test_a_transcript_that_is_not_what_happens_is_noticed() -> None:
    text = "enqueue queue=mail id=j1\nfetch queue=mail worker=w1\n----\nj1 pending → completed\n"

    assert perform(text) != text


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(AttributeError):
        perform("dance j1\n----\n")
