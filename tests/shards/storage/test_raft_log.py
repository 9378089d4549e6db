"""The log as LevelDB keeps it: what comes back is what went in, or nothing comes back at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.errors import Corrupt
from corvo.state import keys
from shards.raft import EntryKind, HardState, LogEntry, Membership, Persist, Restored
from shards.storage import raft_log
from shards.storage.leveldb import Disk
from shards.storage.raft_log import RaftLog, encode
from tests.shards.rig import IDENTITY, MemoryDisk

FOUNDERS = Membership(0, ("node-1",))
HUGE = 1 << 40


def an_entry(index: int, term: int = 1, payload: bytes = b"payload", kind: EntryKind = EntryKind.NORMAL) -> LogEntry:
    return LogEntry(index, term, kind, payload)


def a_persist(*entries: LogEntry, truncate_after: int | None = None, **fields: Any) -> Persist:
    parts: dict[str, Any] = {"snapshot": None, "hard_state": None, "membership": None, "must_sync": True}
    return Persist(token=1, truncate_after=truncate_after, entries=list(entries), **(parts | fields))


def a_log(disk: Any, *entries: LogEntry) -> RaftLog:
    log = RaftLog(disk)
    disk.write(log.persist_part(a_persist(*entries)))
    return log


@contextmanager
def keeping(entries: int, bytes_: int, per_batch: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raft_log, "KEPT_ENTRIES", entries)
        patch.setattr(raft_log, "KEPT_BYTES", bytes_)
        patch.setattr(raft_log, "COMPACT_PER_BATCH", per_batch)
        yield


def all_of(log: RaftLog) -> list[LogEntry]:
    return log.entries(log.first_index, log.last_index, HUGE) if log.last_index >= log.first_index else []


# Round trip


def test_a_new_log_is_empty_and_begins_at_one() -> None:
    log = RaftLog(MemoryDisk())

    assert (log.first_index, log.last_index, log.bytes) == (1, 0, 0)
    assert log.term(0) == 0 and log.term(1) is None
    assert log.restored(0, FOUNDERS) == Restored(HardState(), FOUNDERS, 1, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("kind", list(EntryKind))
def test_every_kind_of_entry_comes_back_as_it_was(tmp_path: Path, kind: EntryKind) -> None:
    Disk.create(tmp_path / "db", IDENTITY)
    disk = Disk(tmp_path / "db", IDENTITY, True)
    entry = an_entry(1, 2**63, b"\0\xff" * 50, kind)
    a_log(disk, entry)
    disk.close()

    disk = Disk(tmp_path / "db", IDENTITY, True)

    assert RaftLog(disk).entries(1, 1, 0) == [entry]
    disk.close()


def test_what_raft_must_remember_comes_back_as_it_was() -> None:
    disk = MemoryDisk()
    log = a_log(disk, an_entry(1, 3), an_entry(2, 5))
    hard_state = HardState(term=6, vote="node-2", commit=1)
    membership = Membership(1, ("node-1", "node-2", "node-3"))

    disk.write(log.persist_part(a_persist(hard_state=hard_state, membership=membership)))

    restored = RaftLog(disk).restored(1, FOUNDERS)
    assert restored == Restored(hard_state, membership, 1, 2, 5, 0, 0, 1)


def test_retrying_jobs_share_the_prefix_of_the_log_without_being_read_as_entries() -> None:
    disk = MemoryDisk()
    a_log(disk, an_entry(1))

    disk.write({keys.retrying("0", 1, "job"): b"", keys.retrying("zzz", 1, "job"): b""})

    assert all_of(RaftLog(disk)) == [an_entry(1)]


def test_entries_are_handed_out_up_to_a_size_but_never_none() -> None:
    log = a_log(MemoryDisk(), *(an_entry(index, payload=b"x" * 10) for index in range(1, 6)))

    assert [entry.index for entry in log.entries(2, 5, 25)] == [2, 3]
    assert [entry.index for entry in log.entries(2, 5, 0)] == [2]
    assert [entry.index for entry in log.entries(2, 3, HUGE)] == [2, 3]


def test_asking_for_an_entry_that_is_not_there_is_corruption() -> None:
    log = a_log(MemoryDisk(), an_entry(1))

    with pytest.raises(Corrupt, match="no entry 2"):
        log.entries(2, 3, HUGE)


# Truncation


def test_entries_after_the_cut_are_gone_and_may_be_written_anew() -> None:
    disk = MemoryDisk()
    log = a_log(disk, *(an_entry(index, 1, b"old") for index in range(1, 6)))

    disk.write(log.persist_part(a_persist(an_entry(3, 2, b"new"), truncate_after=2)))

    expected = [an_entry(1, 1, b"old"), an_entry(2, 1, b"old"), an_entry(3, 2, b"new")]
    assert all_of(log) == all_of(RaftLog(disk)) == expected
    assert log.bytes == RaftLog(disk).bytes == 9
    assert log.term(4) is None


def test_a_cut_behind_the_end_changes_nothing() -> None:
    disk = MemoryDisk()
    log = a_log(disk, an_entry(1))

    disk.write(log.persist_part(a_persist(truncate_after=7)))

    assert log.last_index == 1 and all_of(RaftLog(disk)) == [an_entry(1)]


# Compaction


def test_a_replica_without_followers_keeps_a_short_tail() -> None:
    disk = MemoryDisk()
    count = raft_log.KEPT_ENTRIES_ALONE + raft_log.COMPACT_PER_BATCH + 10
    log = a_log(disk, *(an_entry(index, 1) for index in range(1, count + 1)))

    assert log.compact_part(count) == {}
    disk.write(log.compact_part(count, is_alone=True))

    assert log.first_index == raft_log.COMPACT_PER_BATCH + 1
    assert [entry.index for entry in all_of(RaftLog(disk))] == list(range(log.first_index, count + 1))


def test_compaction_forgets_a_slice_at_a_time_and_keeps_a_tail_by_count() -> None:
    disk = MemoryDisk()
    with keeping(entries=10, bytes_=HUGE, per_batch=4):
        log = a_log(disk, *(an_entry(index, index) for index in range(1, 31)))
        firsts = []

        for _ in range(8):
            disk.write(log.compact_part(applied_on_disk=28))
            firsts.append(log.first_index)

        assert firsts == [5, 9, 13, 17, 17, 17, 17, 17]  # 18 would leave 10 behind 28, but 2 are not worth a write
        assert [entry.index for entry in all_of(RaftLog(disk))] == list(range(17, 31))
        assert RaftLog(disk).term(16) == 16, "the term before the first entry is remembered"


def test_compaction_never_goes_past_what_is_applied_on_disk() -> None:
    disk = MemoryDisk()
    with keeping(entries=0, bytes_=0, per_batch=100):
        log = a_log(disk, *(an_entry(index) for index in range(1, 31)))

        for _ in range(3):
            disk.write(log.compact_part(applied_on_disk=7))

        assert log.first_index == 8
        assert [entry.index for entry in all_of(RaftLog(disk))] == list(range(8, 31))


def test_compaction_keeps_no_more_bytes_than_it_may() -> None:
    disk = MemoryDisk()
    with keeping(entries=1_000, bytes_=100, per_batch=64):
        log = a_log(disk, *(an_entry(index, payload=b"x" * 30) for index in range(1, 11)))

        disk.write(log.compact_part(applied_on_disk=10))

        assert log.bytes <= 100, "few large entries must be forgotten as well as many small ones"
        assert [entry.index for entry in all_of(RaftLog(disk))] == [8, 9, 10]


def test_compaction_with_nothing_to_forget_writes_nothing() -> None:
    with keeping(entries=1_000, bytes_=100, per_batch=64):
        log = a_log(MemoryDisk(), *(an_entry(index, payload=b"x" * 30) for index in range(1, 11)))

        assert log.compact_part(applied_on_disk=0) == {}


def test_an_empty_log_after_compaction_goes_on_where_it_was() -> None:
    disk = MemoryDisk()
    with keeping(entries=0, bytes_=0, per_batch=100):
        log = a_log(disk, an_entry(1, 4), an_entry(2, 6))
        disk.write(log.compact_part(applied_on_disk=2))

    reopened = RaftLog(disk)

    assert (reopened.first_index, reopened.last_index, reopened.term(2)) == (3, 2, 6)
    assert reopened.restored(2, FOUNDERS).last_term == 6
    disk.write(reopened.persist_part(a_persist(an_entry(3, 6))))
    assert all_of(RaftLog(disk)) == [an_entry(3, 6)]


# Damage


def test_a_hole_in_the_log_is_corruption() -> None:
    disk = MemoryDisk()
    a_log(disk, *(an_entry(index) for index in range(1, 5)))

    disk.write({keys.log_entry(2): None})

    with pytest.raises(Corrupt, match="jumps from 1 to 3"):
        RaftLog(disk)


def test_a_log_that_lost_its_beginning_is_corruption() -> None:
    disk = MemoryDisk()
    a_log(disk, *(an_entry(index) for index in range(1, 5)))

    disk.write({keys.log_entry(1): None})

    with pytest.raises(Corrupt, match="jumps from 0 to 2"):
        RaftLog(disk)


def test_an_entry_cut_short_is_corruption() -> None:
    disk = MemoryDisk()
    a_log(disk, an_entry(1))

    disk.write({keys.log_entry(1): b"\0" * 12})

    with pytest.raises(Corrupt, match="cut short"):
        RaftLog(disk)


@pytest.mark.parametrize("at", [0, 7, 8, 9, 12, 13, -1])
def test_a_flipped_bit_anywhere_in_an_entry_is_corruption(at: int) -> None:
    disk = MemoryDisk()
    a_log(disk, an_entry(1))
    raw = bytearray(disk.get(keys.log_entry(1)) or b"")

    raw[at] ^= 1
    disk.write({keys.log_entry(1): bytes(raw)})

    with pytest.raises(Corrupt, match="checksum"):
        RaftLog(disk)


def test_an_entry_in_anothers_place_is_corruption() -> None:
    disk = MemoryDisk()
    a_log(disk, an_entry(1, payload=b"a"), an_entry(2, payload=b"b"))

    disk.write({keys.log_entry(2): disk.get(keys.log_entry(1))})

    with pytest.raises(Corrupt, match=r"entry 2 .* checksum"):
        RaftLog(disk)


def test_a_term_that_falls_is_corruption() -> None:
    disk = MemoryDisk()
    log = RaftLog(disk)

    disk.write(log.persist_part(a_persist(an_entry(1, 2), an_entry(2, 1))))

    with pytest.raises(Corrupt, match="falls from 2 to 1 at 2"):
        RaftLog(disk)


def test_a_term_that_falls_below_that_of_the_forgotten_entries_is_corruption() -> None:
    disk = MemoryDisk()
    log = RaftLog(disk)
    disk.write(log.persist_part(a_persist(an_entry(1, 1))))

    disk.write({keys.LOG_META: encode((1, 9))})

    with pytest.raises(Corrupt, match="falls from 9"):
        RaftLog(disk)


@pytest.mark.parametrize("applied", [3, 9])
def test_a_state_that_lies_outside_the_log_is_corruption(applied: int) -> None:
    """A log that lost acknowledged entries at its end is noticed where the state knew of them."""
    disk = MemoryDisk()
    disk.write({keys.LOG_META: encode((5, 1))})
    log = a_log(disk, an_entry(5), an_entry(6))

    with pytest.raises(Corrupt, match=r"outside the log 5\.\.6"):
        log.restored(applied, FOUNDERS)

    assert [log.restored(inside, FOUNDERS).applied for inside in (4, 5, 6)] == [4, 5, 6]


# Incarnations


def test_every_start_has_a_greater_incarnation_already_on_disk() -> None:
    disk = MemoryDisk()

    numbers = []
    for _ in range(3):
        numbers.append(RaftLog(disk).next_incarnation())
        assert disk.writes == len(numbers)

    assert numbers == [1, 2, 3]


# Against a list

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=40)), min_size=1, max_size=4)
        ),
        st.tuples(st.just("cut"), st.integers(0, 4)),
        st.tuples(st.just("apply"), st.integers(0, 6)),
        st.tuples(st.just("compact"), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=40,
)


@given(steps, st.integers(0, 5), st.integers(0, 90), st.integers(1, 10))
def test_any_sequence_of_appending_cutting_compacting_and_starting_leaves_what_a_list_would_hold(
    steps: list[tuple[str, Any]], kept_entries: int, kept_bytes: int, per_batch: int
) -> None:
    disk = MemoryDisk()
    log = RaftLog(disk)
    model: list[LogEntry] = []
    forgotten = applied = anchor_term = 0
    term = 1

    with keeping(kept_entries, kept_bytes, per_batch):
        for verb, value in steps:
            last = forgotten + len(model)
            if verb == "append":
                new = []
                for step, payload in value:
                    term += step
                    new.append(an_entry(last + len(new) + 1, term, payload))
                disk.write(log.persist_part(a_persist(*new)))
                model += new
            elif verb == "cut":
                keep = max(applied, last - value)
                disk.write(log.persist_part(a_persist(truncate_after=keep)))
                model = model[: keep - forgotten]
            elif verb == "apply":
                applied = min(applied + value, last)
            elif verb == "compact":
                was = log.first_index
                disk.write(log.compact_part(applied))
                assert was <= log.first_index <= min(was + per_batch, applied + 1)
                dropped, model = model[: log.first_index - 1 - forgotten], model[log.first_index - 1 - forgotten :]
                forgotten = log.first_index - 1
                anchor_term = dropped[-1].term if dropped else anchor_term
            else:
                log = RaftLog(disk)

            assert all_of(log) == model
            assert (log.first_index, log.last_index) == (forgotten + 1, forgotten + len(model))
            assert log.bytes == sum(len(entry.payload) for entry in model)
            for entry in model:
                assert log.term(entry.index) == entry.term
            assert log.term(log.last_index + 1) is None
            assert log.term(log.first_index - 1) == anchor_term

        # However much there was: given enough batches, what is kept fits the bounds, but for the slice not worth one.
        for _ in range(200):
            disk.write(log.compact_part(applied))
        unneeded = applied - log.first_index + 1 - kept_entries
        assert unneeded < per_batch
        assert log.bytes <= kept_bytes or log.first_index == applied + 1
    restored = RaftLog(disk).restored(applied, FOUNDERS)
    assert (restored.first_index, restored.last_index) == (log.first_index, log.last_index)
    assert restored.last_term == log.term(log.last_index)
