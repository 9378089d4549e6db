"""The plays in tests/scenarios/raft. `RAFT_REWRITE=1` writes what happened; then read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from raft_play import play

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "raft"


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.txt")), ids=lambda path: path.stem)
def test_the_play_goes_as_written(path: Path) -> None:
    written = path.read_text()

    happened = play(written)

    if os.environ.get("RAFT_REWRITE"):
        path.write_text(happened)
    else:
        assert happened == written


def test_there_are_plays() -> None:
    assert len(list(SCENARIOS.glob("*.txt"))) >= 15


def test_a_play_that_goes_otherwise_is_noticed() -> None:
    assert play("replicas a fresh\ntick 0\nstatus\n----\nwrong\n") != "replicas a fresh\ntick 0\nstatus\n----\nwrong\n"
