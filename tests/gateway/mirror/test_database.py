from itertools import permutations
from pathlib import Path

import pytest

from corvo.model.job import JobError, encode
from corvo.model.job_extras import JobExtras
from corvo.state import keys
from gateway.mirror.database import MirrorDb
from gateway.mirror.rows import to_rows, to_stretch
from gateway.mirror.shard_writes import ShardWrite
from tests.support.builders import NOW, a_job, job_id
from tests.support.read_dbs import FilePlace

from .mirrors import a_turn, publish


def test_rows_and_cursor_are_committed_together_or_not_at_all(place):
    database = publish(place)
    bad = a_turn(5, upto=9)
    bad.rows.queues.put.append(("too", "short"))

    with pytest.raises((*place.faults, ValueError)):
        database.write([a_turn(4, upto=8), bad])

    assert [(shard, index) for shard, index, _, _ in database.cursors()] == [(0, 1)]
    assert place.read("SELECT count(*) FROM jobs") == [(2,)]
    database.close()


def test_a_shard_deletes_only_rows_of_its_own(place):
    database = publish(place)

    database.write([ShardWrite(shard=1, rows=to_rows(1, [(keys.job(job_id(1)), None)]), stretch=to_stretch(b"", b""))])

    assert place.read("SELECT count(*) FROM jobs") == [(2,)]
    database.close()


# A job moves from shard 0 to shard 1. Each shard tells its own part in order, and each is followed at its own pace.

JOB, ERROR = keys.job(job_id(7)), keys.job_error(job_id(7), 1)
FAILURE = encode(JobError(job_id(7), 1, 1, "boom", "", NOW))


def at(shard, queue, extras=None):
    job = encode(a_job(7, queue=queue, extras=extras))
    return ShardWrite(shard=shard, rows=to_rows(shard, [(JOB, job), (ERROR, FAILURE)]))


def left(shard):
    return ShardWrite(shard=shard, rows=to_rows(shard, [(JOB, None), (ERROR, None)]))


def not_in_the_scan(shard):
    return ShardWrite(shard=shard, rows=to_rows(shard, []), stretch=to_stretch(b"", b""))


def interleavings(first, second):
    """Every order in which the turns of two shards can come."""
    for order in sorted(set(permutations([0] * len(first) + [1] * len(second)))):
        turns = (iter(first), iter(second))
        yield [next(turns[shard]) for shard in order]


MOVES = {
    "there": ([at(0, "old"), left(0)], [at(1, "new")], [(1, "new")]),
    "there, with bonds": (
        [at(0, "old", JobExtras(unique_key="k")), left(0)],
        [at(1, "new", JobExtras())],
        [(1, "new")],
    ),
    "there, and the scan of the old shard": ([at(0, "old"), not_in_the_scan(0)], [at(1, "new")], [(1, "new")]),
    "there, and the scan of the new shard": ([at(0, "old"), left(0)], [not_in_the_scan(1), at(1, "new")], [(1, "new")]),
    "there and back": ([at(0, "old"), left(0), at(0, "back")], [at(1, "new"), left(1)], [(0, "back")]),
    "there, and then deleted": ([at(0, "old"), left(0)], [at(1, "new"), left(1)], []),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_job_that_moves_stands_where_it_is_whatever_order_the_news_comes_in(place, move):
    first, second, stands = MOVES[move]
    database = publish(place)
    for turns in interleavings(first, second):
        database.write([left(0), left(1)])

        for turn in turns:
            database.write([turn])

        of_job = f"= '{job_id(7)}'"
        assert place.read(f"SELECT shard, queue FROM jobs WHERE id {of_job}") == stands
        assert place.read(f"SELECT shard FROM job_errors WHERE job_id {of_job}") == [(shard,) for shard, _ in stands]
    database.close()


def test_a_job_without_bonds_leaves_nothing_of_those_that_stood_there_before(place):
    database = publish(place)
    database.write([at(0, "mail", JobExtras(unique_key="k", batch_id="b"))])

    database.write([at(0, "mail")])

    assert place.read(f"SELECT unique_key, batch_id FROM jobs WHERE id = '{job_id(7)}'") == [(None, None)]
    database.close()


def test_the_log_is_cut_when_it_has_grown(tmp_path, monkeypatch):
    database = publish(FilePlace(tmp_path))
    monkeypatch.setattr("gateway.mirror.database.WAL_BYTES_MAX", 1)
    database.write([a_turn(3, upto=2)])
    log = Path(f"{database.path}-wal")
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
