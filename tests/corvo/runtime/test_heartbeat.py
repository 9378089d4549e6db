"""Heartbeats: what a process writes, and what others read from it."""

from pathlib import Path

from corvo.runtime.heartbeat import INTERVAL_NS, LastBeat, ProcessHeartbeat, heartbeat_path, read_heartbeats
from tests.support.builders import Clock

SECOND = 1_000_000_000


def test_a_beat_is_read_by_others(tmp_path: Path) -> None:
    ProcessHeartbeat(tmp_path, "shard-0", 30.0, Clock([7 * SECOND])).beat()
    ProcessHeartbeat(tmp_path, "mirror", 90.0, Clock([8 * SECOND])).beat()

    assert read_heartbeats(tmp_path) == {
        "mirror": LastBeat(8 * SECOND, 90 * SECOND),
        "shard-0": LastBeat(7 * SECOND, 30 * SECOND),
    }


def test_it_is_written_once_a_second_however_often_the_loop_turns(tmp_path: Path) -> None:
    times = [SECOND, SECOND + 1, SECOND + INTERVAL_NS - 1]
    heartbeat = ProcessHeartbeat(tmp_path, "shard-0", 30.0, lambda: times.pop(0))
    for _ in range(3):
        heartbeat.beat()
    assert read_heartbeats(tmp_path)["shard-0"].at_ns == SECOND

    times.append(SECOND + INTERVAL_NS)
    heartbeat.beat()

    assert read_heartbeats(tmp_path)["shard-0"].at_ns == SECOND + INTERVAL_NS


def test_a_process_that_ends_its_loop_is_no_longer_watched(tmp_path: Path) -> None:
    heartbeat = ProcessHeartbeat(tmp_path, "gateway-0", 30.0)
    heartbeat.beat()
    heartbeat.end()
    heartbeat.beat()

    assert read_heartbeats(tmp_path) == {}


def test_without_a_limit_nothing_is_written(tmp_path: Path) -> None:
    ProcessHeartbeat(tmp_path, "gateway-0", 0.0).beat()

    assert list(tmp_path.iterdir()) == []


def test_a_process_that_cannot_write_goes_on_unwatched(tmp_path: Path) -> None:
    heartbeat = ProcessHeartbeat(tmp_path / "gone", "gateway-0", 30.0)

    heartbeat.beat()

    assert read_heartbeats(tmp_path / "gone") == {}


def test_a_file_that_is_being_made_says_nothing(tmp_path: Path) -> None:
    heartbeat_path(tmp_path, "shard-1").write_bytes(b"")

    assert read_heartbeats(tmp_path) == {}


def test_a_beat_is_late_after_its_limit() -> None:
    beat = LastBeat(10 * SECOND, 30 * SECOND)

    assert not beat.is_late(40 * SECOND)
    assert beat.is_late(40 * SECOND + 1)
    assert beat.silent_s(41 * SECOND) == 31.0
