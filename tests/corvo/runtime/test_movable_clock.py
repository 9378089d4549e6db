"""A clock that tests move forward."""

import time
from pathlib import Path

import pytest

from corvo.cli.supervise.server import CannotStart, check_clock
from corvo.runtime.movable_clock import MovedClock, mark, wall_clock
from corvo.runtime.settings import BadSettings, load

HOUR_NS = 3_600_000_000_000


def test_all_processes_see_the_movement(tmp_path: Path) -> None:
    mark(tmp_path)
    one, other = wall_clock(True, tmp_path), MovedClock(tmp_path)
    assert abs(one() - time.time_ns()) < HOUR_NS

    other.advance(2 * HOUR_NS)

    assert time.time_ns() + HOUR_NS < one() < time.time_ns() + 3 * HOUR_NS
    mark(tmp_path)  # again, as a restart does
    assert MovedClock(tmp_path)() > time.time_ns() + HOUR_NS


def test_it_does_not_move_back(tmp_path: Path) -> None:
    mark(tmp_path)

    with pytest.raises(ValueError, match="forward only"):
        MovedClock(tmp_path).advance(-1)


def test_a_server_has_the_real_one() -> None:
    assert wall_clock(False, Path("/nowhere")) is time.time_ns


def test_real_and_moved_times_do_not_mix(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="real clock"):
        check_clock(tmp_path, is_movable=True, is_new=False)
    check_clock(tmp_path, is_movable=False, is_new=False)

    check_clock(tmp_path, is_movable=True, is_new=True)

    check_clock(tmp_path, is_movable=True, is_new=False)
    with pytest.raises(CannotStart, match="made with --test-clock"):
        check_clock(tmp_path, is_movable=False, is_new=False)


@pytest.mark.parametrize("flags", [{"bind": ":8080"}, {"bind": "127.0.0.1:8080", "bootstrap": "true"}])
def test_only_a_single_node_on_loopback_may_have_it(flags: dict[str, str]) -> None:
    with pytest.raises(BadSettings, match="--test-clock"):
        load({**flags, "test_clock": "true"}, {})
