import sqlite3
from pathlib import Path

import pytest

from corvo.state import keys
from gateway.mirror import trust
from gateway.mirror.database import MirrorDb, Turn
from gateway.mirror.rows import to_rows, to_stretch
from tests.support.builders import job_id

from .mirrors import a_turn, publish, read


@pytest.fixture
def path(tmp_path):
    return tmp_path / trust.READ_DB


def test_rows_and_cursor_are_committed_together_or_not_at_all(path):
    database = publish(path)
    bad = a_turn(5, upto=9)
    bad.rows.queues.put.append(("too", "short"))

    with pytest.raises(sqlite3.Error):
        database.write([a_turn(4, upto=8), bad])

    assert [(shard, index) for shard, index, _, _ in database.cursors()] == [(0, 1)]
    assert read(path, "SELECT count(*) FROM jobs") == [(2,)]
    database.close()


def test_a_shard_deletes_only_rows_of_its_own(path):
    database = publish(path)

    database.write([Turn(shard=1, rows=to_rows(1, [(keys.job(job_id(1)), None)]), stretch=to_stretch(b"", b""))])

    assert read(path, "SELECT count(*) FROM jobs") == [(2,)]
    database.close()


def test_the_log_is_cut_when_it_has_grown(path, monkeypatch):
    database = publish(path)
    monkeypatch.setattr("gateway.mirror.database.WAL_BYTES_MAX", 1)
    database.write([a_turn(3, upto=2)])
    log = Path(f"{path}-wal")
    assert log.stat().st_size > 0

    database.maybe_cut_log()

    assert log.stat().st_size == 0
    database.close()


def test_a_new_file_has_every_pragma_that_keeps_it_fast_and_safe(tmp_path):
    database = MirrorDb(tmp_path / "x.db")
    ask = database._connection.execute

    assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ask("PRAGMA synchronous").fetchone() == (0,)
    assert ask("PRAGMA foreign_keys").fetchone() == (0,)
    database.close()
