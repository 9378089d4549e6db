import asyncio
import sqlite3
import threading

import pytest
import sqlalchemy as sa

from corvo.errors import Refusal
from gateway.answers import database as answers_database
from gateway.answers import queues
from gateway.answers.database import ReadDb
from gateway.mirror import trust
from gateway.mirror.schema import jobs
from tests.support.builders import a_job


def count(read_db):
    return asyncio.run(read_db.ask(lambda reading: reading.rows(sa.select(sa.func.count()).select_from(jobs))[0][0]))


def refused(read_db, question=lambda reading: reading.rows(sa.select(jobs.c.id))):
    with pytest.raises(Refusal) as refusal:
        asyncio.run(read_db.ask(question))
    return refusal.value


def test_a_missing_database_is_unavailable_and_not_created(tmp_path):
    read_db = ReadDb(tmp_path / "read.db")

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
    written.writer.close()
    trust.remove(written.path)
    assert refused(read_db).code == "READ_DB_UNAVAILABLE"

    written.swap()

    assert count(read_db) == 0


def test_damage_is_unavailable_and_noted_for_the_mirror(written, read_db):
    written.put(*[a_job(number) for number in range(200)])
    trust.close_clean(written.writer)
    content = bytearray(written.path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    written.path.write_bytes(content)

    assert refused(read_db).code == "READ_DB_UNAVAILABLE"

    assert trust.is_suspected(written.path)


def test_a_file_that_is_no_database_is_unavailable(tmp_path):
    path = tmp_path / "read.db"
    path.write_bytes(b"no database at all " * 500)
    read_db = ReadDb(path)

    assert refused(read_db).code == "READ_DB_UNAVAILABLE"
    assert trust.is_suspected(path)
    read_db.close()


def test_nothing_can_be_written_through_it(written, read_db):
    def write(reading):
        reading._connection.execute("DELETE FROM mirror_meta")

    assert refused(read_db, write).code == "READ_DB_UNAVAILABLE"
    assert count(read_db) == 0


def test_a_question_that_takes_too_long_is_interrupted(written):
    read_db = ReadDb(written.path, budget_ms=50)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"

    refusal = refused(read_db, lambda reading: reading._connection.execute(endless).fetchall())

    assert refusal.code == "DEADLINE_EXCEEDED"
    assert count(read_db) == 0
    read_db.close()


def test_more_questions_than_can_wait_are_refused(written, read_db, monkeypatch):
    monkeypatch.setattr(answers_database, "WAITING_MAX", 2)
    may_go_on = threading.Event()

    async def three():
        asked = [asyncio.ensure_future(read_db.ask(lambda reading: may_go_on.wait(5))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refusal:
            await read_db.ask(lambda reading: None)
        may_go_on.set()
        await asyncio.gather(*asked)
        return refusal.value.code

    assert asyncio.run(three()) == "OVERLOADED"


def test_one_question_sees_one_moment(written, read_db):
    written.put(a_job(1))

    def question(reading):
        before = reading.rows(sa.select(sa.func.count()).select_from(jobs))
        written_by = threading.Thread(target=_write_one, args=(written.path,))
        written_by.start()
        written_by.join()
        return before, reading.rows(sa.select(sa.func.count()).select_from(jobs))

    before, after = asyncio.run(read_db.ask(question))

    assert before == after == [(1,)]
    assert count(read_db) == 0


def _write_one(path):
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM jobs")
    connection.commit()
    connection.close()


def test_closing_twice_or_unused_harms_nothing(tmp_path):
    read_db = ReadDb(tmp_path / "read.db")

    read_db.close()
    read_db.close()


def test_the_answers_work_on_a_database_without_jobs(written, read_db):
    assert asyncio.run(queues.answer(read_db)) == []
