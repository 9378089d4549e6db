"""What can happen to a file."""

import asyncio

import pytest
import sqlalchemy as sa

from corvo.model.errors import Refusal
from gateway.readdb import file
from gateway.readdb.schema import jobs
from gateway.search.database import ReadDb
from tests.gateway.search.conftest import Written
from tests.support.builders import a_job
from tests.support.read_dbs import FilePlace


def refused(path):
    read_db = ReadDb(path)
    with pytest.raises(Refusal) as refusal:
        asyncio.run(read_db.ask(lambda session: session.rows(sa.select(jobs.c.id))))
    read_db.close()
    return refusal.value.code


def test_damage_is_unavailable_and_noted_for_the_mirror(tmp_path):
    written = Written(FilePlace(tmp_path))
    written.put(*[a_job(number) for number in range(200)])
    written.store.close_clean(written.writer)
    content = bytearray(written.path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    written.path.write_bytes(content)

    assert refused(written.path) == "READ_DB_UNAVAILABLE"

    assert file.is_marked_damaged(written.path)


def test_a_file_that_is_no_database_is_unavailable(tmp_path):
    path = tmp_path / "read.db"
    path.write_bytes(b"no database at all " * 500)

    assert refused(path) == "READ_DB_UNAVAILABLE"
    assert file.is_marked_damaged(path)
