"""The indexes of texts behind a mirror that follows shards: brought up to date by itself, and after a start too."""

import sqlite3

import pytest

from gateway.mirror import follow
from gateway.mirror.database import MirrorDb
from tests.support.builders import enqueue, job_id
from tests.support.read_dbs import FilePlace

from .fake_shard import FakeShard
from .mirrors import Mirror, eventually, is_equal

WITH_NEEDLE = 'SELECT rowid FROM jobs_grams WHERE jobs_grams MATCH \'"nee" AND "dle"\''


@pytest.fixture
def place(tmp_path):
    return FilePlace(tmp_path)


@pytest.fixture
def shard(tmp_path):
    made = FakeShard(f"ipc://{tmp_path}/s0")
    made.start()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(follow, "INDEX_AFTER_MS", 0)


def indexed(place):
    try:
        return len(place.read(WITH_NEEDLE))
    except sqlite3.Error:  # there is no file yet
        return 0


def add(shard, *numbers):
    shard.apply(*[enqueue(number, payload=b'{"a":"needle"}') for number in numbers])


def test_the_indexes_follow_the_jobs(tmp_path, place, shard):
    add(shard, *range(50))
    with Mirror(tmp_path, place, [shard]):
        eventually(lambda: indexed(place) == 50)
        add(shard, *range(50, 60))
        eventually(lambda: indexed(place) == 60)

        assert is_equal(place, [shard])


def test_what_a_mirror_had_not_indexed_the_next_one_does(tmp_path, place, shard, monkeypatch):
    with monkeypatch.context() as idle:
        idle.setattr(MirrorDb, "index", lambda self, budget_ms: False)
        add(shard, *range(10))
        with Mirror(tmp_path, place, [shard]):
            eventually(lambda: is_equal(place, [shard]))
    assert indexed(place) == 0

    with Mirror(tmp_path, place, [shard]):
        eventually(lambda: indexed(place) == 10)


def test_a_file_that_was_deleted_is_indexed_anew(tmp_path, place, shard):
    add(shard, 1)
    with Mirror(tmp_path, place, [shard]):
        eventually(lambda: indexed(place) == 1)
        place.remove()
        eventually(lambda: indexed(place) == 1)

    assert place.read("SELECT job_id FROM documents") == [(job_id(1),)]
