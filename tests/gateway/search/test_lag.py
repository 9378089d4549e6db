import asyncio
import time

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.timestamps import to_rfc3339
from gateway.search import lag
from gateway.search.database import ReadDb
from tests.support.builders import NOW

from .conftest import Written


def test_a_followed_shard_is_at_most_a_delivery_behind(written, ask):
    written.put_cursor(age_ms=900)

    found = ask(lag.read_lag)

    assert found.lag_ms == lag.DELIVERY_MS
    assert found.rows_total == 10
    assert found.generation == written.writer.meta().generation


def test_a_shard_just_written_reports_less_than_a_delivery(written, ask):
    written.put_cursor()

    assert 0 <= ask(lag.read_lag).lag_ms <= lag.DELIVERY_MS


def test_a_shard_that_nobody_vouches_for_any_more_ages(written, ask):
    written.put_cursor(age_ms=10_000)

    assert 10_000 <= ask(lag.read_lag).lag_ms < 20_000


def test_a_shard_that_is_not_followed_ages_at_once(written, ask):
    written.put_cursor(age_ms=300, is_following=False)

    assert 300 <= ask(lag.read_lag).lag_ms < 5_000


def test_the_worst_shard_counts(written, ask):
    written.put_cursor(shard=0)
    written.put_cursor(shard=1, age_ms=60_000)

    assert ask(lag.read_lag).lag_ms >= 60_000


def test_a_shard_never_heard_of_is_as_old_as_the_file(place):
    made = Written(place, shards=2)
    made.put_cursor(shard=0)
    made.writer.put_meta(msgspec.structs.replace(made.writer.meta(), created_at=to_rfc3339(NOW)))
    read_db = ReadDb(made.path)

    found = asyncio.run(lag.read_lag(read_db))

    assert found.lag_ms > 1e9
    read_db.close()
    made.close()


def test_a_clock_that_went_back_gives_no_negative_lag(written, ask):
    written.put_cursor(age_ms=-60_000)

    assert ask(lag.read_lag).lag_ms == 0


def test_waiting_ends_when_the_cursors_have_passed(written, read_db):
    written.put_cursor(index=5)

    async def wait():
        waiting = asyncio.ensure_future(lag.wait_for(read_db, {0: 7}))
        await read_db.ask(lambda session: None)
        assert not waiting.done()
        written.put_cursor(index=8)
        await asyncio.wait_for(waiting, 5)

    asyncio.run(wait())


def test_waiting_in_vain_is_refused(written, read_db, monkeypatch):
    monkeypatch.setattr(lag, "WAIT_MS_MAX", 50)
    since = time.monotonic()

    with pytest.raises(Refusal) as refusal:
        asyncio.run(lag.wait_for(read_db, {0: 10**9}))

    assert refusal.value.code == "READ_DB_UNAVAILABLE"
    assert 0.05 <= time.monotonic() - since < 2


def test_a_shard_without_a_cursor_has_passed_nothing(written, read_db, monkeypatch):
    monkeypatch.setattr(lag, "WAIT_MS_MAX", 10)

    with pytest.raises(Refusal):
        asyncio.run(lag.wait_for(read_db, {3: 1}))
