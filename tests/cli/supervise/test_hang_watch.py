"""When a silence is long enough to end a process."""

from corvo.cli.supervise.hang_watch import HangWatch, look_interval_s
from corvo.runtime.heartbeat import LastBeat

LIMIT = 30 * 10**9


def beat(at: int, limit_ns: int = LIMIT) -> LastBeat:
    return LastBeat(at, limit_ns)


def watch_until(
    watch: HangWatch, end_s: int, beats: dict[str, LastBeat], begin_s: int = 0
) -> dict[int, dict[str, float]]:
    """What each look told, every five seconds."""
    return {now: told for now in range(begin_s, end_s + 1, 5) if (told := watch.look(float(now), beats))}


def test_a_process_that_beats_is_left_alone() -> None:
    watch = HangWatch(5.0)

    assert not any(watch.look(5.0 * number, {"shard-0": beat(number)}) for number in range(20))


def test_a_process_is_told_once_its_silence_exceeds_its_limit() -> None:
    still = {"shard-0": beat(1)}

    assert watch_until(HangWatch(5.0), 60, still) == {35: {"shard-0": 35.0}}


def test_one_that_does_not_end_is_told_again_a_limit_later() -> None:
    assert list(watch_until(HangWatch(5.0), 70, {"shard-0": beat(1)})) == [35, 70]


def test_each_has_its_own_limit() -> None:
    assert list(watch_until(HangWatch(5.0), 40, {"mirror": beat(1, 90 * 10**9)})) == []


def test_the_time_that_we_slept_ourselves_counts_against_nobody() -> None:
    watch, still = HangWatch(5.0), {"shard-0": beat(1), "mirror": beat(1)}
    watch.look(0.0, still)

    assert watch.look(600.0, still) == {}


def test_a_process_that_was_restarted_begins_anew() -> None:
    watch = HangWatch(5.0)
    watch_until(watch, 25, {"shard-0": beat(1)})
    watch.look(30.0, {})

    assert watch.look(35.0, {"shard-0": beat(1)}) == {}


def test_it_looks_several_times_within_a_limit_and_seldom_when_idle() -> None:
    assert look_interval_s(4.0) == 0.8
    assert look_interval_s(600.0) == 5.0
