import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.mirror import sqlite_store
from gateway.mirror.store import UntrustedDatabase
from tests.support.builders import NOW, job_id
from tests.support.read_dbs import BOOT, FilePlace

from .mirrors import SHARDS, a_turn, publish


@pytest.fixture
def place(tmp_path):
    return FilePlace(tmp_path)


@pytest.fixture
def path(place):
    return place.address


def reopen(place, boot_id=BOOT, shards=SHARDS):
    place.store(shards, boot_id).open_trusted().close()


def why_not(place, boot_id=BOOT, shards=SHARDS):
    with pytest.raises(UntrustedDatabase) as refusal:
        reopen(place, boot_id, shards)
    return str(refusal.value)


def close_clean(place, database):
    place.store().close_clean(database)


def files(path):
    return sorted(file.name for file in path.parent.iterdir())


def test_a_file_left_by_a_crash_is_trusted_within_the_same_boot(place):
    publish(place).close()

    reopen(place)

    assert place.read("SELECT count(*) FROM jobs") == [(2,)]


def test_a_file_of_another_boot_is_not_trusted(place):
    publish(place).close()

    assert why_not(place, "boot-2") == "the machine stopped while it was open"


def test_a_file_that_was_closed_cleanly_is_trusted_after_a_reboot(place):
    close_clean(place, publish(place))

    reopen(place, "boot-2")


def test_the_clean_mark_is_used_up_by_the_next_opening(place):
    close_clean(place, publish(place))
    reopen(place, "boot-2")  # opened, then killed

    assert why_not(place, "boot-3") == "the machine stopped while it was open"


def test_the_clean_mark_leaves_no_log_behind(place, path):
    close_clean(place, publish(place))

    assert files(path) == ["read.db", f"read.db.{NOW:x}"]


def test_without_a_boot_id_only_a_clean_close_is_trusted(place):
    publish(place, "").close()

    assert why_not(place, "") == "the machine stopped while it was open"


def test_a_missing_file_is_not_trusted_and_not_created(place, path):
    assert why_not(place) == "the file does not exist"
    assert files(path) == []


def test_a_link_to_nowhere_is_not_trusted(place, path):
    publish(place).close()
    path.resolve().unlink()

    assert why_not(place) == "the file does not exist"


def test_another_schema_is_not_trusted(place):
    publish(place).close()
    place.tamper("UPDATE mirror_meta SET schema_version = '0-old'")

    assert why_not(place).startswith("its schema version is 0-old")


def test_another_number_of_shards_is_not_trusted(place):
    publish(place).close()

    assert why_not(place, shards=3) == "it was made for 2 shards, the node has 3"


@pytest.mark.parametrize("content", [b"", b"no database at all " * 500])
def test_a_file_that_is_no_database_is_not_trusted(place, path, content):
    path.write_bytes(content)

    assert why_not(place).startswith("it cannot be read")


@pytest.mark.parametrize("page", [0, 1, 5, 20])
def test_flipped_bytes_are_noticed(place, path, page):
    close_clean(place, publish(place))
    content = bytearray(path.read_bytes())
    for at in range(page * 4096, page * 4096 + 200):
        content[at] ^= 0xFF
    path.write_bytes(content)

    assert why_not(place)


LEFTOVERS = ("read.db-wal", "read.db-shm", "read.db.new-1", "read.db.new-1-wal", "read.db.1f", "read.db.1f-wal")


def test_whoever_distrusts_a_file_leaves_nothing_of_it(place, path):
    publish(place).close()
    for name in (*LEFTOVERS, "read.db.suspect"):
        path.with_name(name).write_bytes(b"old")
    store = place.store()

    store.remove_published()
    store.begin(NOW + 1).close()

    assert files(path) == [f"read.db.{NOW + 1:x}"]


def test_a_file_that_is_trusted_loses_what_others_left_beside_it(place, path):
    publish(place).close()
    for name in LEFTOVERS:
        path.with_name(name).write_bytes(b"old")
    path.with_name("read.db.rebuild").touch()

    reopen(place)

    assert files(path) == ["read.db", f"read.db.{NOW:x}", "read.db.rebuild"]


def test_a_file_of_a_version_without_links_gives_way(place, path):
    publish(place).close()
    path.resolve().rename(path)
    assert not path.is_symlink()
    store = place.store()

    building = store.begin(NOW + 1)
    store.publish(building, NOW + 1)
    building.close()

    assert path.resolve().name == f"read.db.{NOW + 1:x}"


def test_a_swap_under_open_readers_mixes_nothing(place, path):
    old = publish(place)
    old.write([a_turn(3, upto=2)])  # in the old log, not in the old file
    reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (3,)
    store = place.store()

    new = store.begin(NOW + 1)
    new.write([a_turn(7)])
    store.publish(new, NOW + 1)
    new.write([a_turn(8, upto=2)])

    assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (3,)
    reader.close()
    assert place.read("SELECT id FROM jobs ORDER BY id") == [(job_id(7),), (job_id(8),)]
    assert new.is_sound()
    new.close()
    old.close()


def test_the_former_file_stays_as_long_as_somebody_may_be_about_to_open_it(place, path, monkeypatch):
    old = publish(place)
    store = place.store()
    new = store.begin(NOW + 1)
    store.publish(new, NOW + 1)

    store.retire(old)
    store.look(new)
    assert old.path.exists()
    store.begin(NOW + 2).close()
    assert old.path.exists()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + sqlite_store.FORMER_KEPT_S + 1)
    store.look(new)

    assert files(path) == sorted(
        ["read.db", *[f"{new.path.name}{end}" for end in ("", "-shm", "-wal")], f"read.db.{NOW + 2:x}"]
    )
    new.close()


KILLED = """
import os, sys
from pathlib import Path
from gateway.mirror.sqlite_store import SqliteStore
database = SqliteStore(Path(sys.argv[1]), "boot-1", 2).open_trusted()
connection = database._connection
connection.execute("BEGIN IMMEDIATE")
connection.execute("PRAGMA cache_spill = 1")
connection.execute("DELETE FROM jobs")
connection.execute("UPDATE mirror_cursors SET applied_index = 99")
print("inside", flush=True)
sys.stdin.read()
"""


def test_a_writer_killed_inside_a_transaction_leaves_the_state_before_it(place, path):
    publish(place).close()
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

    database = place.store().open_trusted()
    assert [(shard, index) for shard, index, _, _ in database.cursors()] == [(0, 1)]
    assert place.read("SELECT count(*) FROM jobs") == [(2,)]
    database.close()


def test_opening_forgets_who_waited_and_what_was_followed(place):
    database = publish(place)
    turn = a_turn(3, upto=2)
    turn.presence = [("w1", 0, "default", None, "[]", "t", "t", None, None)]
    database.write([turn])
    database.close()

    reopen(place)

    assert place.read("SELECT count(*) FROM presence") == [(0,)]
    assert place.read("SELECT is_following FROM mirror_cursors") == [(0,)]
