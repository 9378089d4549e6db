"""Damage in a block that nobody reads is found all the same."""

import time
from pathlib import Path

import plyvel
import pytest

from shards.storage import scrub as scrub_module
from shards.storage.leveldb import Disk
from shards.storage.scrub import Scrub

IDENTITY = b"cluster/node-1/0/1/1"
PATIENCE_S = 30.0


def a_database(path: Path, records: int = 5_000) -> None:
    Disk.create(path, IDENTITY)
    disk = Disk(path, IDENTITY, False)
    disk.write({b"j|%08d" % number: b"%d" % number * 40 for number in range(records)})
    disk.close()
    db = plyvel.DB(str(path))
    db.compact_range()  # out of LevelDB's log, into tables
    db.close()


def flip_a_byte(path: Path) -> None:
    table = max(path.glob("*.ldb"), key=lambda file: file.stat().st_size)
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 0xFF
    table.write_bytes(content)


def until_over(scrub: Scrub) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not (scrub.is_done or scrub.fault):
        assert time.monotonic() < deadline, "it never ends"
        time.sleep(0.001)


def test_a_sound_database_is_read_to_its_end(tmp_path: Path) -> None:
    a_database(tmp_path / "db")
    disk = Disk(tmp_path / "db", IDENTITY, False)
    scrub = Scrub(disk)
    scrub.start()
    until_over(scrub)
    scrub.stop()
    disk.close()
    assert (scrub.is_done, scrub.fault) == (True, "")


def test_a_flipped_byte_in_a_table_is_found(tmp_path: Path) -> None:
    a_database(tmp_path / "db")
    flip_a_byte(tmp_path / "db")
    disk = Disk(tmp_path / "db", IDENTITY, False)
    scrub = Scrub(disk)
    scrub.start()
    until_over(scrub)
    scrub.stop()
    disk.close()
    assert "cannot be read" in scrub.fault and not scrub.is_done


def test_it_ends_when_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub_module, "PAUSE_S", PATIENCE_S)
    a_database(tmp_path / "db")
    disk = Disk(tmp_path / "db", IDENTITY, False)
    scrub = Scrub(disk)
    scrub.start()
    scrub.stop()
    disk.close()
    assert (scrub.is_done, scrub.fault) == (False, "")
