"""What holds for every read database, whatever it is made of."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from corvo.model.errors import Refusal
from corvo.model.reach import Reach
from gateway.readdb.schema import jobs
from gateway.search import database as answers_database
from gateway.search import lag, queues
from gateway.search.database import OutOfTime, ReadDb
from tests.gateway.search.conftest import Written
from tests.support.builders import a_job

COUNT = sa.select(sa.func.count()).select_from(jobs)


def count(read_db):
    return asyncio.run(read_db.ask(lambda session: session.rows(COUNT)[0][0]))


def lag_of(read_db):
    return asyncio.run(lag.read_lag(read_db))


def refused(read_db, question=lambda session: session.rows(sa.select(jobs.c.id))):
    with pytest.raises(Refusal) as refusal:
        asyncio.run(read_db.ask(question))
    return refusal.value


def endless():
    n = sa.select(sa.literal(1).label("x")).cte("n", recursive=True)
    n = n.union_all(sa.select(n.c.x))
    return sa.select(sa.func.count()).select_from(n)


def test_a_missing_database_is_unavailable_and_not_created(place, tmp_path):
    read_db = ReadDb(place.address)

    refusal = refused(read_db)

    assert (refusal.code, refusal.status, refusal.retry_after_ms) == ("READ_DB_UNAVAILABLE", 503, 1000)
    assert list(tmp_path.iterdir()) == []
    read_db.close()


def test_a_swapped_database_is_read_anew(written, read_db):
    written.put(a_job(1), a_job(2))
    assert count(read_db) == 2

    written.swap()
    written.put(a_job(3))

    assert count(read_db) == 1


def test_a_deleted_database_is_unavailable_until_it_is_back(written, read_db):
    assert count(read_db) == 0
    written.place.remove()
    assert refused(read_db).code == "READ_DB_UNAVAILABLE"

    written.swap()

    assert count(read_db) == 0


def test_nothing_can_be_written_through_it(written, read_db):
    def write(session):
        session._connection.execute("DELETE FROM mirror_meta")

    assert refused(read_db, write).code == "READ_DB_UNAVAILABLE"
    assert count(read_db) == 0


def test_a_question_that_takes_too_long_is_interrupted(written):
    read_db = ReadDb(written.path, budget_ms=50)

    refusal = refused(read_db, lambda session: session.rows(endless()))

    assert refusal.code == "DEADLINE_EXCEEDED"
    patient = ReadDb(written.path)
    assert count(patient) == 0
    patient.close()
    read_db.close()


def test_a_part_that_takes_too_long_leaves_time_for_the_rest(written, read_db):
    def question(session):
        with pytest.raises(OutOfTime), session.budget(30):
            session.rows(endless())
        return session.rows(COUNT)

    assert asyncio.run(read_db.ask(question)) == [(0,)]


def test_a_part_that_takes_the_whole_time_ends_the_question(written):
    read_db = ReadDb(written.path, budget_ms=50)

    def question(session):
        with session.budget(10_000):
            session.rows(endless())

    assert refused(read_db, question).code == "DEADLINE_EXCEEDED"
    read_db.close()


def test_more_questions_than_can_wait_are_refused(written, read_db, monkeypatch):
    monkeypatch.setattr(answers_database, "WAITING_MAX", 2)
    may_go_on = threading.Event()

    async def three():
        asked = [asyncio.ensure_future(read_db.ask(lambda session: may_go_on.wait(5))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refusal:
            await read_db.ask(lambda session: None)
        may_go_on.set()
        await asyncio.gather(*asked)
        return refusal.value.code

    assert asyncio.run(three()) == "OVERLOADED"


def test_one_question_sees_one_moment(written, read_db):
    written.put(a_job(1))

    def question(session):
        before = session.rows(COUNT)
        written.place.tamper("DELETE FROM jobs")
        return before, session.rows(COUNT)

    before, after = asyncio.run(read_db.ask(question))

    assert before == after == [(1,)]
    assert count(read_db) == 0


def test_one_question_never_mixes_two_databases(written, read_db):
    written.put(a_job(1))
    is_inside, may_go_on = threading.Event(), threading.Event()

    def question(session):
        before = session.rows(COUNT)
        is_inside.set()
        may_go_on.wait(5)
        return before, session.rows(COUNT)

    with ThreadPoolExecutor(1) as another:
        context = another.submit(asyncio.run, read_db.ask(question))
        assert is_inside.wait(5)
        swap_and_put(written, 1, 2, 3)
        may_go_on.set()
        before, after = context.result(5)

    assert before == after
    assert count(read_db) == 3


def swap_and_put(written, *numbers):
    """A rebuild, as a mirror makes it: filled before anybody sees it."""
    building = written.store.begin(time.time_ns())
    former, written.writer = written.writer, building
    written.put(*[a_job(number) for number in numbers])
    written.store.publish(building, time.time_ns())
    written.store.retire(former)


def test_no_read_fails_while_databases_are_swapped(place):
    made = Written(place)
    made.put_cursor()
    made.put(a_job(1))
    read_db = ReadDb(place.address)
    is_over = threading.Event()
    found, failed = [], []

    def hammer():
        while not is_over.is_set():
            try:
                found.append(place.read("SELECT count(*) FROM jobs")[0][0])
                found.append(count(read_db))
            except (*place.faults, Refusal) as error:
                failed.append(repr(error))

    readers = [threading.Thread(target=hammer) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(8):
            seen = len(found)
            swap_and_put(made, 1)
            made.store.look(made.writer)
            deadline = time.monotonic() + 10
            while len(found) < seen + 12 and not failed and time.monotonic() < deadline:
                time.sleep(0.001)
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
        read_db.close()
        made.close()
    assert failed == []
    assert set(found) == {1}
    assert len(found) >= 8 * 12


def test_closing_twice_or_unused_harms_nothing(place):
    read_db = ReadDb(place.address)

    read_db.close()
    read_db.close()


def test_the_answers_work_on_a_database_without_jobs(written, read_db):
    assert asyncio.run(queues.answer(read_db.within(Reach()))) == []
