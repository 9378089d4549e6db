"""LevelDB, tamed: created once, opened strictly, written whole, and never believed after a failure."""

from pathlib import Path
from typing import Any

import plyvel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.model.errors import Corrupt
from corvo.state import keys
from corvo.state.kv import KV, MemoryKV
from shards.storage.leveldb import Disk, DiskFailed
from tests.shards.rig import IDENTITY, a_directory, files_end_at


def a_disk(path: Path, is_synced: bool = False) -> Disk:
    Disk.create(path, IDENTITY)
    return Disk(path, IDENTITY, is_synced)


def newest(path: Path, pattern: str) -> Path:
    return max(path.glob(pattern), key=lambda file: file.name)


def flip_bit(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


# Its size


def test_the_size_of_a_range_is_estimated_from_its_tables(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    assert disk.estimated_bytes([(b"a", b"z")]) == 0
    disk.write({b"j%02d" % number: bytes(64 * 1024) for number in range(32)})
    disk.close()
    disk = Disk(tmp_path / "db", IDENTITY, False)  # a start writes what the log holds to tables

    assert disk.estimated_bytes([(b"j", b"k")]) > 1024 * 1024
    assert disk.estimated_bytes([(b"a", b"b"), (b"x", b"z")]) == 0


# Made once


def test_what_is_written_is_read_back_after_a_start(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    disk.write({b"a": b"1", b"empty": b""})

    disk.close()
    disk = Disk(tmp_path / "db", IDENTITY, True)

    assert disk.get(b"a") == b"1"
    assert disk.get(b"empty") == b""
    assert disk.get(b"b") is None
    disk.close()


def test_another_replicas_database_is_refused_and_left_free_for_its_owner(tmp_path: Path) -> None:
    a_disk(tmp_path / "db").close()

    with pytest.raises(Corrupt, match="belongs to"):
        Disk(tmp_path / "db", b"cluster/node-2/0/1/1", True)

    Disk(tmp_path / "db", IDENTITY, True).close()


def test_a_missing_directory_is_refused_and_never_made(tmp_path: Path) -> None:
    with pytest.raises(Corrupt):
        Disk(tmp_path / "db", IDENTITY, True)

    with pytest.raises(Corrupt):  # whatever the first attempt left behind
        Disk(tmp_path / "db", IDENTITY, True)


def test_an_empty_directory_is_refused_and_never_filled(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()

    with pytest.raises(Corrupt):
        Disk(tmp_path / "db", IDENTITY, True)

    assert not list((tmp_path / "db").glob("*.ldb")) and not (tmp_path / "db" / "CURRENT").exists()


def test_a_database_without_CURRENT_is_refused_and_its_tables_are_kept(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    disk.write({b"a": b"1"})
    disk._db.compact_range()
    disk.close()
    tables = {file.name: file.read_bytes() for file in (tmp_path / "db").glob("*.ldb")}
    current = (tmp_path / "db" / "CURRENT").read_bytes()
    assert tables

    (tmp_path / "db" / "CURRENT").unlink()
    with pytest.raises(Corrupt):
        Disk(tmp_path / "db", IDENTITY, True)

    assert {file.name: file.read_bytes() for file in (tmp_path / "db").glob("*.ldb")} == tables
    (tmp_path / "db" / "CURRENT").write_bytes(current)
    restored = Disk(tmp_path / "db", IDENTITY, True)
    assert restored.get(b"a") == b"1"
    restored.close()


def test_creating_over_a_living_database_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    disk.write({b"a": b"1"})
    disk.close()

    with pytest.raises(OSError):
        Disk.create(tmp_path / "db", b"somebody else")

    disk = Disk(tmp_path / "db", IDENTITY, True)
    assert disk.get(b"a") == b"1"
    disk.close()


@pytest.mark.parametrize("left_behind", [[], ["LOCK"], ["LOCK", "LOG", "MANIFEST-000002", "CURRENT", "000003.log"]])
def test_a_creation_that_was_interrupted_can_be_repeated(tmp_path: Path, left_behind: list[str]) -> None:
    draft = tmp_path / "db.new"
    draft.mkdir()
    for name in left_behind:
        (draft / name).write_bytes(b"half")

    disk = a_disk(tmp_path / "db")

    assert disk.get(keys.IDENTITY) == IDENTITY
    assert not draft.exists()
    disk.close()


def test_one_process_can_open_a_database_once(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")

    with pytest.raises(Corrupt):
        Disk(tmp_path / "db", IDENTITY, True)

    disk.write({b"a": b"1"})
    disk.close()


# Written whole


def test_later_parts_of_a_write_win_over_earlier_ones(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    disk.write({b"gone": b"old"})

    disk.write({b"a": b"1", b"b": b"1", b"c": None}, {b"a": b"2", b"b": None, b"c": b"3", b"gone": None})

    assert [disk.get(key) for key in (b"a", b"b", b"c", b"gone")] == [b"2", None, b"3", None]
    disk.close()


def test_a_write_that_breaks_off_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    """Trap 49: plyvel writes the half-filled batch of a `with` block that raises."""
    disk = a_disk(tmp_path / "db")
    broken: Any = {b"a": b"1", b"b": "not bytes"}

    with pytest.raises(TypeError):
        disk.write({b"first": b"part"}, broken)

    assert list(disk.scan(b"a", b"z")) == []
    disk.close()
    disk = Disk(tmp_path / "db", IDENTITY, True)
    assert list(disk.scan(b"a", b"z")) == []
    disk.close()


def test_a_write_that_does_not_reach_the_disk_raises_DiskFailed(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db", is_synced=True)
    disk.write({b"acknowledged": b"1"})
    log = newest(tmp_path / "db", "*.log")

    with files_end_at(log.stat().st_size + 100), pytest.raises(DiskFailed):
        disk.write({b"lost": b"x" * 10_000})

    disk.close()
    disk = Disk(tmp_path / "db", IDENTITY, True)
    assert disk.get(b"acknowledged") == b"1"
    assert disk.get(b"lost") is None
    disk.close()


def test_a_write_that_meets_a_damaged_table_says_so_and_ends_the_handle(tmp_path: Path) -> None:
    """LevelDB meets damage when it rewrites tables, and tells the next writer. Starting again would not help."""

    class Damaged:
        def write_batch(self, sync: bool) -> "Damaged":
            return self

        def put(self, key: bytes, value: bytes) -> None:
            pass

        delete = put

        def write(self) -> None:
            raise plyvel.CorruptionError(b"Corruption: block checksum mismatch")

    disk = a_disk(tmp_path / "db")
    disk._db.close()
    disk._db = Damaged()

    with pytest.raises(Corrupt, match="a table is damaged: Corruption: block checksum mismatch"):
        disk.write({b"a": b"1"})
    with pytest.raises(DiskFailed):
        disk.write({b"a": b"1"})


def test_after_a_failed_write_nothing_more_is_acknowledged_on_this_handle(tmp_path: Path) -> None:
    """LevelDB would acknowledge later writes and lose them (reliability.md, finding 1)."""
    disk = a_disk(tmp_path / "db", is_synced=True)
    log = newest(tmp_path / "db", "*.log")
    with files_end_at(log.stat().st_size + 100), pytest.raises(DiskFailed):
        disk.write({b"lost": b"x" * 10_000})

    with pytest.raises(DiskFailed):
        disk.write({b"after": b"1"})

    disk.close()


# Damage is noticed


def test_a_flipped_bit_in_a_table_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    disk.write({b"a%03d" % number: b"value %d" % number for number in range(200)})
    disk._db.compact_range()
    disk.close()
    table = newest(tmp_path / "db", "*.ldb")

    flip_bit(table, 100)  # in the first data block

    with pytest.raises(Corrupt):
        disk = Disk(tmp_path / "db", IDENTITY, True)
        disk.get(b"a000")


def test_a_flipped_bit_in_a_table_is_noticed_by_a_scan(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    disk.write({b"a%05d" % number: b"value %d" % number * 10 for number in range(2_000)})
    disk._db.compact_range()
    disk.close()
    table = newest(tmp_path / "db", "*.ldb")

    flip_bit(table, table.stat().st_size // 2)

    with pytest.raises(Corrupt):
        disk = Disk(tmp_path / "db", IDENTITY, True)
        list(disk.scan(b"a", b"b"))


def test_a_flipped_bit_in_the_log_is_noticed_at_the_start(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db", is_synced=True)
    for number in range(20):
        disk.write({b"a%d" % number: b"x" * 100})
    log = newest(tmp_path / "db", "*.log")
    disk.close()

    flip_bit(log, log.stat().st_size // 2)

    with pytest.raises(Corrupt):
        Disk(tmp_path / "db", IDENTITY, True)


# The contract with `corvo.state.kv.KV`, beside the map that tests use

small_keys = st.binary(min_size=1, max_size=2)
parts = st.lists(st.dictionaries(small_keys, st.none() | st.binary(max_size=3), max_size=6), min_size=1, max_size=3)


@settings(max_examples=25)
@given(st.lists(parts, max_size=5), small_keys, small_keys)
def test_a_disk_answers_as_the_map_in_memory_does(
    batches: list[list[dict[bytes, bytes | None]]], start: bytes, stop: bytes
) -> None:
    with a_directory() as address_book:
        disk = a_disk(address_book / "db")
        memory = MemoryKV()
        memory.write({keys.IDENTITY: IDENTITY})

        for batch in batches:
            disk.write(*batch)
            for part in batch:
                memory.write(part)

        kvs: list[KV] = [disk, memory]
        assert list(kvs[0].scan(start, stop)) == list(kvs[1].scan(start, stop))
        assert list(kvs[0].scan(b"", b"\xff" * 3)) == list(kvs[1].scan(b"", b"\xff" * 3))
        for key in {key for batch in batches for part in batch for key in part}:
            assert kvs[0].get(key) == kvs[1].get(key)
        disk.close()


def test_a_scan_takes_its_start_and_leaves_its_stop(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    disk.write({b"a": b"1", b"b": b"2", b"b\0": b"3", b"c": b"4"})

    assert [key for key, _ in disk.scan(b"a", b"c")] == [b"a", b"b", b"b\0"]
    assert [key for key, _ in disk.scan(keys.after(b"b"), b"c")] == [b"b\0"]
    assert list(disk.scan(b"c", b"a")) == []
    disk.close()


def test_a_scan_that_is_given_up_halfway_does_not_hinder_writing_or_closing(tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "db")
    disk.write({b"a": b"1", b"b": b"2"})

    pairs = disk.scan(b"a", b"z")
    next(pairs)
    disk.write({b"c": b"3"})

    assert list(pairs) == [(b"b", b"2")]  # the state as the scan began
    next(disk.scan(b"a", b"z"))
    disk.close()
