"""A rebuild that somebody asks for: built beside, while the published database is read and followed."""

import threading
import time

from corvo.model.errors import Refusal
from corvo.state import keys
from gateway.readdb import rebuild_request
from gateway.search.database import ReadDb
from gateway.search.lag import DELIVERY_MS
from tests.gateway.search.test_database import count, lag_of
from tests.support.builders import enqueue, job_id

from .mirrors import Mirror, caught_up, eventually, generation_of, work


def ask_and_await(tmp_path, place, shards):
    before = generation_of(place)
    rebuild_request.leave(tmp_path)
    eventually(lambda: generation_of(place) != before)


def test_a_rebuild_ends_in_equality(tmp_path, place, shards):
    work(shards[0], 1)
    work(shards[1], 100)
    with Mirror(tmp_path, place, shards, records_max=7):
        caught_up(place, shards)
        place.tamper("DELETE FROM jobs")  # what nobody would ever notice

        ask_and_await(tmp_path, place, shards)

        caught_up(place, shards)
        work(shards[0], 200)
        caught_up(place, shards)
    assert not (tmp_path / rebuild_request.REQUEST).exists()
    with Mirror(tmp_path, place, shards):
        work(shards[1], 300)
        caught_up(place, shards)


def test_meanwhile_the_published_database_is_followed(tmp_path, place, shards):
    work(shards[0], 1, count=60)
    with Mirror(tmp_path, place, shards, records_max=10):
        caught_up(place, shards)
        generation, seen = generation_of(place), len(shards[0].scans)
        arrived = []

        def meanwhile():
            """Between two pieces: something new, which readers are shown before the rebuild is over."""
            if len(shards[0].scans) == seen + 3 and not arrived:
                arrived.append(shards[0].applied_index + 1)
                shards[0].apply(enqueue(900))

        shards[0].after_piece = meanwhile
        shards[0].before_piece = lambda: (
            not arrived
            or generation_of(place) != generation
            or eventually(lambda: place.read(f"SELECT 1 FROM jobs WHERE id = '{job_id(900)}'"), "followed")
        )

        ask_and_await(tmp_path, place, shards)

        assert arrived
        caught_up(place, shards)


def test_changes_between_the_pieces_reach_both_databases(tmp_path, place, shards):
    work(shards[0], 1, count=40)
    with Mirror(tmp_path, place, shards, records_max=5):
        caught_up(place, shards)
        firsts = iter([100, 200, 300, 400])

        def meanwhile():
            first = next(firsts, None)
            if first is not None:
                work(shards[0], first)
                shards[0].delete(keys.job(job_id(first)))

        shards[0].after_piece = meanwhile

        ask_and_await(tmp_path, place, shards)

        caught_up(place, shards)


def test_a_piece_that_is_older_than_what_was_told_is_asked_for_again(tmp_path, place, shards):
    """A shard scans what is on its disk, and tells what it has applied, which is more."""
    work(shards[0], 1, count=40)
    with Mirror(tmp_path, place, shards, records_max=5):
        caught_up(place, shards)
        shards[0].lag_of_disk = 3  # pieces show the disk of three scans ago
        deleted = []

        def meanwhile():
            """Delete a job that the next piece covers, and its disk still has."""
            ahead = [
                key for key in shards[0].records() if key.startswith(keys.JOBS) and key > shards[0].scans[-1].start
            ]
            if len(deleted) < 5 and len(ahead) > 7:
                deleted.append(ahead[7])
                shards[0].delete(ahead[7])

        shards[0].after_piece = meanwhile

        ask_and_await(tmp_path, place, shards)

        caught_up(place, shards)
    assert len(deleted) == 5
    assert shards[0].stale_pieces > 0


def test_a_gap_in_the_middle_of_a_rebuild_is_scanned_for_both(tmp_path, place, shards):
    work(shards[0], 1, count=40)
    with Mirror(tmp_path, place, shards, records_max=5):
        caught_up(place, shards)
        scans = len(shards[0].scans)

        def meanwhile():
            if len(shards[0].scans) == scans + 3:
                shards[0].delete(keys.job(job_id(1)))
                work(shards[0], 100)
                shards[0].forget_feed()

        shards[0].after_piece = meanwhile

        ask_and_await(tmp_path, place, shards)

        caught_up(place, shards)


def test_a_rebuild_that_fails_costs_nothing_but_itself(tmp_path, place, shards, monkeypatch):
    work(shards[0], 1)
    with Mirror(tmp_path, place, shards) as mirror:
        caught_up(place, shards)
        generation = generation_of(place)
        store = type(mirror.store)
        fault, abandoned = place.faults[0]("no room"), []
        abandon = store.abandon
        monkeypatch.setattr(store, "publish", lambda *_: (_ for _ in ()).throw(fault))
        monkeypatch.setattr(store, "abandon", lambda self, one: abandoned.append(abandon(self, one)))
        rebuild_request.leave(tmp_path)
        eventually(lambda: abandoned)
        monkeypatch.undo()

        work(shards[0], 100)
        caught_up(place, shards)
        assert generation_of(place) == generation
        ask_and_await(tmp_path, place, shards)
        caught_up(place, shards)


def test_no_read_fails_during_rebuilds_and_none_shows_less_than_all(tmp_path, place, shards):
    work(shards[0], 1, count=20)
    read_db = ReadDb(place.address)
    is_over = threading.Event()
    found, failed = [], []

    def hammer():
        while not is_over.is_set():
            try:
                found.append(count(read_db))
                found.append(place.read("SELECT count(*) FROM jobs")[0][0])
            except (*place.faults, Refusal) as error:
                failed.append(repr(error))

    with Mirror(tmp_path, place, shards, records_max=5):
        caught_up(place, shards)
        readers = [threading.Thread(target=hammer) for _ in range(2)]
        for reader in readers:
            reader.start()
        try:
            for _ in range(2):
                ask_and_await(tmp_path, place, shards)
                seen = len(found)
                eventually(lambda seen=seen: len(found) > seen + 10 or failed)
        finally:
            is_over.set()
            for reader in readers:
                reader.join()
    read_db.close()
    assert failed == []
    assert set(found) == {20}


def test_a_rebuilt_database_is_not_called_old(tmp_path, place, shards):
    work(shards[0], 1)
    read_db = ReadDb(place.address)
    with Mirror(tmp_path, place, shards, wait_ms=20_000):
        caught_up(place, shards)

        ask_and_await(tmp_path, place, shards)

        found = lag_of(read_db)
    assert found.lag_ms <= DELIVERY_MS
    assert found.rebuild_ms >= 0
    assert time.time() - 60 < found.rebuilt_at <= time.time()
    read_db.close()
