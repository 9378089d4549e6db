import threading
import time

import pytest

from corvo.model.job import Worker, encode
from corvo.model.job_extras import JobExtras
from corvo.model.timestamps import parse_rfc3339
from corvo.rules.batches import Batch
from corvo.state import keys
from tests.support.audit import an_audit_entry
from tests.support.builders import NOW, SECOND, a_job, enqueue, job_id

from .fake_shard import FakeShard
from .mirrors import COLUMNS, Mirror, a_schedule, actual, caught_up, eventually, generation_of, seen, work


def furnish(shard):
    """A record of every family, the rarer ones included."""
    work(shard, 1)
    number = int(shard.name[1:])
    batch, schedule = Batch(f"batch-{number}", NOW, total=3), a_schedule(id=f"sch-{number}", name=f"n{number}")
    shard.put(
        {
            keys.job(job_id(90 + number)): encode(a_job(90 + number, extras=JobExtras(batch_id=batch.id))),
            keys.batch(batch.id): encode(batch),
            keys.schedule(schedule.id): encode(schedule),
            keys.audit(90 + number): encode(an_audit_entry(90 + number)),
        }
    )


def test_an_empty_cluster_gets_an_empty_database(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)

    assert place.read("SELECT shard, applied_index FROM mirror_cursors ORDER BY shard") == [(0, 0), (1, 0)]


def test_read_db_becomes_equal_to_the_shards_row_for_row(tmp_path, place, shards):
    work(shards[0], 1)
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        work(shards[0], 100)
        work(shards[1], 200)

        caught_up(place, shards)

    assert len(actual(place)["jobs"]) == 60
    assert len(actual(place)["job_errors"]) > 0


def test_a_change_arrives_long_before_a_parked_question_would_be_given_up(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards, wait_ms=600_000):
        caught_up(place, shards)
        for number in range(1, 4):
            shards[0].apply(enqueue(number))
            index = shards[0].applied_index
            eventually(lambda index=index: place.read(f"SELECT 1 FROM mirror_cursors WHERE applied_index >= {index}"))


def test_deleted_records_leave_the_database(tmp_path, place, shards):
    work(shards[0], 1)
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)

        shards[0].delete(*[key for key in shards[0].records() if key.startswith(keys.JOBS)][:7])

        caught_up(place, shards)
    assert len(actual(place)["jobs"]) == 13


@pytest.mark.parametrize("is_scanned", [False, True], ids=["by its feed", "by a scan"])
def test_whatever_family_a_record_is_of_its_row_goes_with_it(tmp_path, place, shards, is_scanned):
    for shard in shards:
        furnish(shard)
    with Mirror(tmp_path, place, shards, records_max=7):
        caught_up(place, shards)
    assert all(actual(place)[name] for name in COLUMNS)

    shards[0].delete(*shards[0].records())
    if is_scanned:
        shards[0].forget_feed()

    with Mirror(tmp_path, place, shards, records_max=7):
        caught_up(place, shards)
    assert all({row[COLUMNS[name].index("shard")] for row in rows} == {1} for name, rows in actual(place).items())


@pytest.mark.parametrize("is_seen_there_first", [False, True])
def test_a_job_that_moves_to_another_shard_keeps_one_row(tmp_path, place, shards, is_seen_there_first):
    key, job = keys.job(job_id(1)), a_job(1)
    shards[0].put({key: encode(job)})
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        moved = a_job(1, queue="elsewhere")
        steps = [lambda: shards[0].delete(key), lambda: shards[1].put({key: encode(moved)})]

        for step in reversed(steps) if is_seen_there_first else steps:
            step()
            caught_up(place, shards)

    assert place.read("SELECT id, shard, queue FROM jobs") == [(job_id(1), 1, "elsewhere")]


def test_lost_answers_are_asked_for_again(tmp_path, place, shards):
    shards[0].answers_to_lose = 2  # of the scan
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        shards[0].answers_to_lose = 2
        work(shards[0], 1)

        caught_up(place, shards)

    assert shards[0].answers_lost == 4


def test_every_pull_is_a_receipt_for_what_is_committed(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        for first in (1, 100, 200):
            work(shards[0], first)
            caught_up(place, shards)

    receipts = [pull.after for pull in shards[0].pulls]
    assert receipts == sorted(receipts)
    assert receipts[-1] <= place.read("SELECT applied_index FROM mirror_cursors WHERE shard = 0")[0][0]


def test_a_gap_is_scanned_and_ends_in_equality(tmp_path, place, shards):
    work(shards[0], 1)
    work(shards[1], 50)
    with Mirror(tmp_path, place, shards, records_max=7):
        caught_up(place, shards)
        generation = generation_of(place)
    scans = len(shards[0].scans)
    shards[0].delete(*[key for key in shards[0].records() if b"job_" in key][::2])
    work(shards[0], 100)
    shards[0].forget_feed()

    with Mirror(tmp_path, place, shards, records_max=7):
        caught_up(place, shards)
        work(shards[0], 200)
        caught_up(place, shards)

    assert len(shards[0].scans) > scans + 3
    assert generation_of(place) == generation


def test_changes_between_the_pieces_of_a_scan_are_not_lost(tmp_path, place, shards):
    work(shards[0], 1)
    firsts = iter([100, 200, 300])

    def meanwhile():
        first = next(firsts, None)
        if first is not None:
            work(shards[0], first)
            shards[0].delete(keys.job(job_id(first)))

    shards[0].after_piece = meanwhile
    with Mirror(tmp_path, place, shards, records_max=5):
        caught_up(place, shards)

    assert len(actual(place)["jobs"]) == 77


def test_a_restarted_mirror_resumes_from_its_cursor(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards):
        work(shards[0], 1)
        caught_up(place, shards)
    scans = len(shards[0].scans)
    stopped_at = shards[0].applied_index
    shards[0].pulls.clear()
    work(shards[0], 100)

    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)

    assert shards[0].pulls[0].after == stopped_at
    assert len(shards[0].scans) == scans


def test_a_shard_that_restarts_is_followed_again_at_once(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards, wait_ms=20_000):
        caught_up(place, shards)
        shards[0].stop()
        work(shards[0], 1)

        shards[0].start()

        caught_up(place, shards)


def test_a_shard_that_lost_its_newest_entries_is_scanned(tmp_path, place, shards):
    work(shards[0], 1)
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        shards[0].stop()
        other = FakeShard(shards[0].address)
        other.apply(enqueue(500))
        other.start()
        try:
            caught_up(place, [other, shards[1]])
        finally:
            other.stop()


def test_answers_too_big_for_a_frame_are_asked_for_in_smaller_parts(tmp_path, place, shards, monkeypatch):
    monkeypatch.setattr("corvo.links.shard_socket.MESSAGE_BYTES_MAX", 20_000)
    for number in range(20):
        shards[0].apply(enqueue(number, payload=b'"%s"' % (b"x" * 4_000)))
    with Mirror(tmp_path, place, shards, records_max=100):
        caught_up(place, shards)  # by a scan
        for number in range(20, 40):
            shards[0].apply(enqueue(number, payload=b'"%s"' % (b"y" * 4_000)))

        caught_up(place, shards)  # by pulls


def test_waiting_workers_are_known_while_they_wait(tmp_path, place, shards):
    shards[0].presence = [Worker("w9", "host", ["mail"], NOW, NOW)]
    with Mirror(tmp_path, place, shards):
        eventually(lambda: seen(place, "SELECT id, shard FROM presence") == [("w9", 0)])
        shards[0].presence = []

        eventually(lambda: place.read("SELECT count(*) FROM presence") == [(0,)])


def test_a_quiet_shard_is_vouched_for_every_second(tmp_path, place, shards):
    moment = "SELECT caught_up_at FROM mirror_cursors WHERE shard = 1"
    with Mirror(tmp_path, place, shards, wait_ms=20_000):
        caught_up(place, shards)
        before = place.read(moment)[0][0]

        eventually(lambda: place.read(moment)[0][0] > before)

        after = place.read(moment)[0][0]
    assert parse_rfc3339(after) - parse_rfc3339(before) >= 0.9 * SECOND


def test_a_shard_out_of_reach_is_no_longer_followed(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards, wait_ms=20_000):
        caught_up(place, shards)

        shards[1].stop()

        eventually(lambda: place.read("SELECT is_following FROM mirror_cursors ORDER BY shard") == [(1,), (0,)])


def test_a_rebuild_stays_hidden_until_every_shard_is_caught_up(tmp_path, place, shards):
    work(shards[0], 1)
    shards[1].stop()
    with Mirror(tmp_path, place, shards):
        eventually(lambda: len(shards[0].pulls) > 1)
        assert generation_of(place) is None

        shards[1].start()

        caught_up(place, shards)


def test_an_idle_mirror_asks_nothing(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards, wait_ms=20_000):
        caught_up(place, shards)
        eventually(lambda: shards[0].pulls and shards[0].pulls[-1].wait_ms == 20_000)
        asked = len(shards[0].pulls)
        moment = place.read("SELECT caught_up_at FROM mirror_cursors WHERE shard = 0")

        eventually(lambda: place.read("SELECT caught_up_at FROM mirror_cursors WHERE shard = 0") > moment)

        assert len(shards[0].pulls) == asked


def test_stopping_is_quick_and_clean(tmp_path, place, shards):
    threads = threading.active_count()  # those of earlier tests too
    mirror = Mirror(tmp_path, place, shards, wait_ms=20_000)
    with mirror:
        caught_up(place, shards)
        work(shards[0], 1)
        since = time.monotonic()

    assert time.monotonic() - since < 1
    assert place.read("SELECT is_clean FROM mirror_meta") == [(1,)]
    assert threading.active_count() <= threads
