"""Other job servers: what is needed to measure them is there, and what is not installed is said."""

import sys
from pathlib import Path

import pytest

from benchmarks.rivals.programs.board import Board
from benchmarks.rivals.register import RIVALS
from benchmarks.rivals.rival import PROGRAMS, Rival, Tools
from benchmarks.rivals.servers import Missing, Server


class NoServer(Server):
    @classmethod
    def require(cls) -> None:
        """It needs nothing."""


def test_every_rival_has_its_program_and_says_what_a_crash_costs() -> None:
    for rival in RIVALS:
        assert (PROGRAMS / (rival.module if rival.is_node else f"{rival.module}.py")).is_file(), rival.name
        assert rival.is_node or rival.worker
        for is_durable in (False, True):
            assert rival.setting in rival.says(is_durable) and rival.server.says(is_durable)


def test_what_is_not_installed_is_said(tmp_path: Path) -> None:
    tools = Tools((Path(sys.executable),), tmp_path)
    with pytest.raises(Missing, match="the package no-such-package"):
        Rival("Snail", "no-such-package", "with_snail", NoServer, "slow").find(tools)
    with pytest.raises(Missing, match="a Python at"):
        Rival("Snail", "snail", "with_snail", NoServer, "slow").find(Tools((tmp_path / "python",), tmp_path))
    assert Rival("Ours", "msgspec", "x", NoServer, "").find(tools)[0] == Path(sys.executable)


def test_moments_are_seen_by_whoever_opens_the_board(tmp_path: Path) -> None:
    one, other = Board(str(tmp_path / "board")), Board(str(tmp_path / "board"))
    one.set_out(7, 1.5)
    one.arrive(7)

    assert (other.sent_at(7), other.sent_at(8), other.arrived_at(8)) == (1.5, 0.0, 0.0)
    assert other.arrived_at(7) > 1.5
