"""What a leader believes about a follower."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from raft_examples import examples

from shards.raft.progress import Mode, Progress

MS = 1_000_000


def a_progress(match: int = 0, next_index: int = 1, mode: Mode = Mode.PROBE) -> Progress:
    progress = Progress("b", next_index, 0)
    progress.match = match
    progress.mode = mode
    return progress


def test_a_probe_waits_for_its_answer_and_stays_where_it_is() -> None:
    progress = a_progress(next_index=5)

    progress.sent(9, 100, 0)

    assert progress.paused and progress.next == 5 and not progress.inflight


def test_replication_runs_ahead_of_the_answers_within_its_window() -> None:
    progress = a_progress(4, 5, Mode.REPLICATE)

    progress.sent(6, 100, 0)
    progress.sent(8, 50, 0)

    assert progress.next == 9 and progress.inflight_bytes == 150
    assert progress.is_window_full(2, 1000) and progress.is_window_full(9, 150)
    assert not progress.is_window_full(3, 151)


def test_an_answer_frees_all_that_it_covers() -> None:
    progress = a_progress(4, 5, Mode.REPLICATE)
    for last in (6, 8, 9):
        progress.sent(last, 10, 0)

    progress.freed_up_to(8)

    assert list(progress.inflight) == [(9, 10)] and progress.inflight_bytes == 10


def test_an_empty_append_takes_no_room() -> None:
    progress = a_progress(4, 5, Mode.REPLICATE)

    progress.sent(4, 0, 4)

    assert not progress.inflight and progress.next == 5 and progress.sent_commit == 4


def test_a_rejection_of_another_probe_is_stale() -> None:
    progress = a_progress(next_index=10)

    assert not progress.rejected(5, 3)
    assert progress.next == 10
    assert progress.rejected(9, 3)
    assert progress.next == 4


def test_a_rejection_below_what_was_proved_is_stale() -> None:
    progress = a_progress(7, 12, Mode.REPLICATE)

    assert not progress.rejected(7, 2)
    assert progress.mode is Mode.REPLICATE
    assert progress.rejected(11, 2)
    assert progress.mode is Mode.PROBE and progress.next == 8


def test_entering_a_mode_forgets_the_window() -> None:
    progress = a_progress(4, 5, Mode.REPLICATE)
    progress.sent(6, 10, 0)

    progress.await_snapshot(20, 99)

    assert not progress.inflight and progress.inflight_bytes == 0 and progress.snapshot_index == 20


def test_a_learner_has_caught_up_when_a_round_was_short() -> None:
    progress = a_progress(0, 101, Mode.REPLICATE)  # born when the log ended at 100

    progress.match = 50
    progress.measure_catch_up(200, 100 * MS, 1000 * MS)
    assert not progress.caught_up
    progress.match = 100
    progress.measure_catch_up(200, 5000 * MS, 1000 * MS)  # this round took five seconds
    assert not progress.caught_up
    progress.match = 200
    progress.measure_catch_up(210, 5100 * MS, 1000 * MS)
    assert progress.caught_up

    progress.match = 205
    progress.measure_catch_up(300, 7000 * MS, 1000 * MS)  # and this one is late again
    assert not progress.caught_up


def test_a_learner_that_holds_everything_has_caught_up_however_long_it_was_idle() -> None:
    progress = a_progress(100, 101, Mode.REPLICATE)

    progress.measure_catch_up(100, 99_000 * MS, 1000 * MS)

    assert progress.caught_up


@examples(100)
@given(st.lists(st.tuples(st.sampled_from(["accept", "reject", "send", "probe", "snapshot"]), st.integers(0, 12))))
def test_match_never_goes_back_and_stays_below_next(events: list[tuple[str, int]]) -> None:
    progress = Progress("b", 5, 0)
    for kind, index in events:
        before = progress.match
        if kind == "accept":
            progress.accepted(index)
            if progress.mode is Mode.REPLICATE:
                progress.freed_up_to(index)
            else:
                progress.replicate()
        elif kind == "reject":
            progress.rejected(index, index - 1)
        elif kind == "send":
            progress.sent(progress.next - 1 + index, index, 0)
        elif kind == "probe":
            progress.probe(index)
        else:
            progress.await_snapshot(index, 0)
        progress.check()
        assert progress.match >= before
