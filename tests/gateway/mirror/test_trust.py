import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.mirror import trust
from tests.support.builders import NOW, job_id

from .mirrors import BOOT, SHARDS, a_turn, publish, read


@pytest.fixture
def path(tmp_path):
    return tmp_path / trust.READ_DB


def reopen(path, boot_id=BOOT, shards=SHARDS):
    database = trust.open_trusted(path, boot_id, shards)
    database.close()


def why_not(path, boot_id=BOOT, shards=SHARDS):
    with pytest.raises(trust.Untrusted) as refusal:
        reopen(path, boot_id, shards)
    return str(refusal.value)


def files(path):
    return sorted(file.name for file in path.parent.iterdir())


def test_a_file_left_by_a_crash_is_trusted_within_the_same_boot(path):
    publish(path).close()

    reopen(path)

    assert read(path, "SELECT count(*) FROM jobs") == [(2,)]


def test_a_file_of_another_boot_is_not_trusted(path):
    publish(path).close()

    assert why_not(path, "boot-2") == "the machine stopped while it was open"


def test_a_file_that_was_closed_cleanly_is_trusted_after_a_reboot(path):
    trust.close_clean(publish(path))

    reopen(path, "boot-2")


def test_the_clean_mark_is_used_up_by_the_next_opening(path):
    trust.close_clean(publish(path))
    reopen(path, "boot-2")  # opened, then killed

    assert why_not(path, "boot-3") == "the machine stopped while it was open"


def test_the_clean_mark_leaves_no_log_behind(path):
    trust.close_clean(publish(path))

    assert files(path) == ["read.db"]


def test_without_a_boot_id_only_a_clean_close_is_trusted(path):
    publish(path, "").close()

    assert why_not(path, "") == "the machine stopped while it was open"


def test_a_missing_file_is_not_trusted_and_not_created(path):
    assert why_not(path) == "there is no file"
    assert files(path) == []


def test_another_schema_is_not_trusted(path):
    database = publish(path)
    database.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE mirror_meta SET schema_version = '0-old'")
    connection.close()

    assert why_not(path).startswith("its schema is 0-old")


def test_another_number_of_shards_is_not_trusted(path):
    publish(path).close()

    assert why_not(path, shards=3) == "it was made for 2 shards, the node has 3"


@pytest.mark.parametrize("content", [b"", b"no database at all " * 500])
def test_a_file_that_is_no_database_is_not_trusted(path, content):
    path.write_bytes(content)

    assert why_not(path).startswith("it cannot be read")


@pytest.mark.parametrize("page", [0, 1, 5, 20])
def test_flipped_bytes_are_noticed(path, page):
    trust.close_clean(publish(path))
    content = bytearray(path.read_bytes())
    for at in range(page * 4096, page * 4096 + 200):
        content[at] ^= 0xFF
    path.write_bytes(content)

    assert why_not(path)


def test_a_rebuild_removes_the_old_file_and_all_leftovers(path):
    publish(path).close()
    for name in ("read.db-wal", "read.db-shm", "read.db.new-1", "read.db.new-1-wal", "read.db.suspect"):
        path.with_name(name).write_bytes(b"old")

    building = trust.begin_rebuild(path, BOOT, SHARDS, NOW)
    building.close()

    assert files(path) == [f"read.db.new-{NOW:x}"]


def test_a_published_file_stands_alone_and_carries_its_rows(path):
    building = trust.begin_rebuild(path, BOOT, SHARDS, NOW)
    building.write([a_turn(1, 2, 3)])

    database = trust.publish(building, path)

    assert read(path, "SELECT count(*) FROM jobs") == [(3,)]
    assert not list(path.parent.glob("*.new-*"))
    database.close()


def test_a_swap_under_open_readers_mixes_nothing(path):
    old = publish(path)
    old.write([a_turn(3, upto=2)])  # in the old log, not in the old file
    reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (3,)
    old.close()

    building = trust.begin_rebuild(path, BOOT, SHARDS, NOW + 1)
    building.write([a_turn(7)])
    new = trust.publish(building, path)
    new.write([a_turn(8, upto=2)])
    inodes = trust.inodes(path)

    assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (3,)
    reader.close()
    assert read(path, "SELECT id FROM jobs ORDER BY id") == [(job_id(7),), (job_id(8),)]
    assert trust.inodes(path) == inodes
    assert new.is_sound()
    new.close()


def test_suspicion_is_about_one_file_only(path):
    publish(path).close()
    trust.suspicion(path).write_text(str(path.stat().st_ino))
    assert trust.is_suspected(path)

    trust.suspicion(path).write_text(str(path.stat().st_ino + 1))

    assert not trust.is_suspected(path)


KILLED = """
import os, sys
from pathlib import Path
from gateway.mirror import trust
from gateway.mirror.database import MirrorDb
database = trust.open_trusted(Path(sys.argv[1]), "boot-1", 2)
connection = database._connection
connection.execute("BEGIN IMMEDIATE")
connection.execute("PRAGMA cache_spill = 1")
connection.execute("DELETE FROM jobs")
connection.execute("UPDATE mirror_cursors SET applied_index = 99")
print("inside", flush=True)
sys.stdin.read()
"""


def test_a_writer_killed_inside_a_transaction_leaves_the_state_before_it(path):
    publish(path).close()
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert writer.stdout is not None and writer.stdin is not None
    assert writer.stdout.readline() == b"inside\n"

    os.kill(writer.pid, signal.SIGKILL)
    writer.wait(5)
    writer.stdin.close()
    writer.stdout.close()

    database = trust.open_trusted(path, BOOT, SHARDS)
    assert [(shard, index) for shard, index, _, _ in database.cursors()] == [(0, 1)]
    assert read(path, "SELECT count(*) FROM jobs") == [(2,)]
    database.close()


def test_opening_forgets_who_waited_and_what_was_followed(path):
    database = publish(path)
    turn = a_turn(3, upto=2)
    turn.presence = [("w1", 0, None, "[]", "t", "t", None, None)]
    database.write([turn])
    database.close()

    reopen(path)

    assert read(path, "SELECT count(*) FROM presence") == [(0,)]
    assert read(path, "SELECT is_following FROM mirror_cursors") == [(0,)]
