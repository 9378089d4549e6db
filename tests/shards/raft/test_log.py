"""The log against a plain list, and its borders between memory and disk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raft_cluster import Disk
from raft_examples import examples

from shards.raft.log import Log, Restored
from shards.raft.membership import Membership
from shards.raft.messages import EntryKind, HardState, LogEntry

NORMAL = EntryKind.NORMAL


def entry(index: int, term: int, payload: bytes = b"x", kind: EntryKind = NORMAL) -> LogEntry:
    return LogEntry(index, term, kind, payload)


def a_log(terms: list[int], commit: int = 0, tail_bytes_max: int = 1 << 20, in_memory: bool = True) -> Log:
    disk = Disk(Membership())
    if not in_memory:
        disk.write_history(terms, 0)
        disk.hard_state = HardState(max(terms, default=0), "", commit)
        return Log(disk.restored(), disk, tail_bytes_max)
    log = Log(Restored(), disk, tail_bytes_max)
    for index, term in enumerate(terms, 1):
        log.append(entry(index, term))
    log.commit_up_to(commit)
    return log


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_term_is_known_inside_the_log_and_just_before_it(in_memory: bool) -> None:
    log = a_log([1, 1, 3], in_memory=in_memory)

    assert [log.term(index) for index in range(5)] == [0, 1, 1, 3, None]


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(
    ("index", "term", "expected"),
    [(6, 9, (6, 4)), (6, 4, (6, 4)), (6, 3, (5, 3)), (6, 2, (2, 1)), (4, 3, (4, 3)), (9, 9, (6, 4)), (6, 0, (0, 0))],
)
def test_backtracking_skips_a_whole_term(in_memory: bool, index: int, term: int, expected: tuple[int, int]) -> None:
    log = a_log([1, 1, 3, 3, 3, 4], in_memory=in_memory)

    assert log.find_not_above(index, term) == expected


def test_a_duplicate_cuts_nothing() -> None:
    log = a_log([1, 1, 1, 1])

    assert log.accept([entry(1, 1), entry(2, 1)]) is None
    assert log.last_index == 4


def test_a_conflict_cuts_and_replaces() -> None:
    log = a_log([1, 1, 2, 2])

    assert log.accept([entry(2, 1), entry(3, 3)]) == 2
    assert [log.term(index) for index in (1, 2, 3, 4)] == [1, 1, 3, None]


def test_a_cut_of_handed_entries_is_passed_on_to_the_disk_once() -> None:
    log = a_log([1, 1, 2, 2])
    log.take_unhanded()
    log.accept([entry(4, 3)])
    log.accept([entry(3, 4)])

    assert log.cut_after == 2
    assert [e.index for e in log.take_unhanded()] == [3]


def test_a_cut_of_entries_never_handed_needs_no_disk() -> None:
    log = a_log([1, 1])
    log.accept([entry(2, 2)])

    assert log.cut_after is None
    assert [e.term for e in log.take_unhanded()] == [1, 2]


def test_what_is_committed_is_never_cut() -> None:
    log = a_log([1, 1, 1], commit=2)

    with pytest.raises(AssertionError, match="committed"):
        log.accept([entry(2, 2)])


def test_commitment_never_goes_back_nor_ahead() -> None:
    log = a_log([1, 1, 1], commit=2)
    log.commit_up_to(1)

    assert log.commit == 2
    with pytest.raises(AssertionError):
        log.commit_up_to(4)


def test_each_committed_entry_is_handed_out_once() -> None:
    log = a_log([1, 1, 1, 1], commit=2)

    assert [e.index for e in log.take_committed(1 << 20)] == [1, 2]
    assert log.take_committed(1 << 20) == []
    log.commit_up_to(4)
    assert [e.index for e in log.take_committed(1 << 20)] == [3, 4]


def test_an_entry_larger_than_the_limit_still_passes() -> None:
    log = Log(Restored(), Disk(Membership()), 0)
    log.append(entry(1, 1, b"x" * 100))
    log.append(entry(2, 1, b"x" * 100))

    assert len(log.entries(1, 2, 10)) == 1


def test_nothing_unstable_leaves_memory() -> None:
    log = a_log([1] * 4, commit=4, tail_bytes_max=0)
    log.take_committed(1 << 20)
    log.applied_up_to(4)
    log.take_unhanded()
    log.persisted_up_to(2)

    log.release(99)

    assert [e.index for e in log.tail] == [3, 4]
    assert log.term(2) == 1


def test_what_a_live_follower_needs_stays_within_the_limit() -> None:
    log = a_log([1] * 6, commit=6, tail_bytes_max=2)
    log.take_committed(1 << 20)
    log.applied_up_to(6)
    log.take_unhanded()
    log.persisted_up_to(6)

    log.release(3)

    assert [e.index for e in log.tail] == [5, 6]


def test_compaction_leaves_the_term_before_the_first_entry() -> None:
    log = a_log([1, 1, 2, 2], commit=3, in_memory=False)
    log.take_committed(1 << 20)
    log.applied_up_to(3)

    log.compact(4)

    assert (log.first_index, log.snapshot_index, log.snapshot_term) == (4, 3, 2)
    assert log.term(2) is None and log.term(3) == 2


def test_compaction_may_not_reach_what_is_not_applied() -> None:
    log = a_log([1, 1, 2, 2], commit=3, in_memory=False)

    with pytest.raises(AssertionError):
        log.compact(4)


def test_membership_entries_are_found_again_after_a_restart() -> None:
    disk = Disk(Membership())
    disk.log = {1: entry(1, 1), 2: entry(2, 1, kind=EntryKind.MEMBERSHIP), 3: entry(3, 1)}
    disk.hard_state = HardState(1, "", 1)
    log = Log(disk.restored(), disk, 0)

    assert log.has_unapplied_membership() and not log.has_committed_unapplied_membership()
    log.commit_up_to(2)
    assert log.has_committed_unapplied_membership()


@pytest.mark.parametrize(
    "damaged",
    [
        Restored(first_index=3),
        Restored(first_index=4, snapshot_index=3, last_index=2),
        Restored(last_index=2, applied=3),
        Restored(last_index=2, hard_state=HardState(1, "", 3)),
        Restored(first_index=4, snapshot_index=3, last_index=5, applied=2),
    ],
)
def test_a_contradictory_disk_is_refused(damaged: Restored) -> None:
    with pytest.raises(AssertionError):
        Log(damaged, Disk(Membership()), 0)


@examples(100)
@given(st.data())
def test_the_log_behaves_like_a_plain_list(data: st.DataObject) -> None:
    """Random appends of leaders, disk completions, applying and trimming, against a list of (index, term)."""
    disk = Disk(Membership())
    log = Log(Restored(), disk, tail_bytes_max=data.draw(st.integers(0, 8)))
    model: list[int] = []
    term = 1
    for _ in range(data.draw(st.integers(1, 25))):
        act = data.draw(st.sampled_from(["append", "write", "commit", "apply", "release", "compact"]))
        if act == "append":
            term += data.draw(st.integers(0, 1))
            start = data.draw(st.integers(log.commit, len(model)))
            fresh = [entry(start + 1 + n, term) for n in range(data.draw(st.integers(0, 3)))]
            prefix = data.draw(st.integers(log.commit, start))
            repeated = [entry(n + 1, model[n]) for n in range(prefix, start)]
            if not all(e.index <= len(model) and model[e.index - 1] == e.term for e in fresh):
                model[start:] = [e.term for e in fresh]
            log.accept(repeated + fresh)
        elif act == "write":
            cut, log.cut_after = log.cut_after, None
            if cut is not None:
                disk.log = {n: e for n, e in disk.log.items() if n <= cut}
            for e in log.take_unhanded():
                disk.log[e.index] = e
            log.persisted_up_to(log.handed)
        elif act == "commit":
            log.commit_up_to(data.draw(st.integers(0, len(model))))
        elif act == "apply":
            taken = log.take_committed(data.draw(st.integers(1, 4)))
            if taken:
                log.applied_up_to(taken[-1].index)
        elif act == "release":
            log.release(data.draw(st.integers(0, len(model))))
        elif log.applied and log.applied <= log.stable:
            log.compact(data.draw(st.integers(1, log.applied + 1)))
        log.check()
        assert log.last_index == len(model) and log.last_term == (model[-1] if model else 0)
        for index in range(log.first_index, len(model) + 1):
            assert log.term(index) == model[index - 1]
            assert log.entries(index, len(model), 3)[0].index == index
