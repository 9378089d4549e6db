"""What can happen to a server, and what only PostgreSQL has: schemas, locks, other people."""

import asyncio
import socket
import threading

import psycopg
import pytest
import sqlalchemy as sa

from corvo.model.errors import Refusal
from corvo.model.job import JobError, encode
from corvo.runtime.read_db import PostgresAddress, parse_read_db
from corvo.state import keys
from gateway.mirror import databases, postgres_store
from gateway.mirror.postgres_store import PostgresStore
from gateway.mirror.rows import to_rows
from gateway.mirror.shard_writes import ShardWrite
from gateway.mirror.store import UntrustedDatabase
from gateway.readdb import postgres_connection
from gateway.readdb.schema import jobs
from gateway.search import postgres as answers_postgres
from gateway.search.database import ReadDb
from tests.support.builders import NOW, a_job, enqueue, job_id
from tests.support.postgres import NoPostgres, Server
from tests.support.read_dbs import ServerPlace

from .mirrors import Mirror, a_turn, caught_up, eventually, generation_of, publish, work

COUNT = sa.select(sa.func.count()).select_from(jobs)


@pytest.fixture
def place(postgres, request):
    made = ServerPlace(postgres, request.node.name.removeprefix("test_")[:40])
    yield made
    made.clear()


@pytest.fixture
def fragile():
    """A server of the test's own, to be stopped and started."""
    try:
        server = Server()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


def why_not(place, **differently):
    with pytest.raises(UntrustedDatabase) as refusal:
        place.store(**differently).open_trusted()
    return str(refusal.value)


def test_what_one_mirror_wrote_another_goes_on_with(place):
    publish(place).close()

    database = place.store().open_trusted()

    assert [(shard, index) for shard, index, _, _ in database.cursors()] == [(0, 1)]
    database.close()


def test_there_is_nothing_to_trust_at_first(place):
    assert why_not(place) == "the schema does not exist"


def test_another_cluster_s_state_is_not_trusted(place):
    publish(place).close()

    assert why_not(place, origin="another") == "it belongs to another cluster"
    assert why_not(place, shards=3) == "it was made for 2 shards, the node has 3"


def test_another_schema_is_not_trusted(place):
    publish(place).close()
    place.tamper("UPDATE mirror_meta SET schema_version = '0-old'")

    assert why_not(place).startswith("its schema version is 0-old")


def test_a_table_that_somebody_dropped_is_noticed(place):
    publish(place).close()
    place.tamper("DROP TABLE mirror_meta")

    assert why_not(place).startswith("it cannot be read")


def test_a_schema_that_is_not_ours_is_never_touched(place):
    place.server.execute(f"CREATE SCHEMA {place.address.schema}")
    place.server.execute(f"CREATE TABLE {place.address.schema}.dear (x int)")
    store = place.store()

    for step in (store.open_trusted, lambda: store._drop(place.address.schema)):
        with pytest.raises(psycopg.Error, match="was not created by Corvo"):
            step()

    assert place.read("SELECT count(*) FROM dear") == [(0,)]


def test_a_second_mirror_is_kept_out(place):
    publish(place).close()
    second = PostgresStore(place.address, "boot-1", 2)

    with pytest.raises(psycopg.OperationalError, match="another mirror writes schema"):
        second.open_trusted()


def test_who_still_reads_the_former_database_keeps_it(place, monkeypatch):
    monkeypatch.setattr(postgres_store, "DROP_PATIENCE_MS", 20)
    store = place.store()
    first = store.begin(NOW)
    store.publish(first, NOW)
    with place._connect() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs")
        second = store.begin(NOW + 1)
        store.publish(second, NOW + 1)
        store.retire(first)
        store.look(second)
        assert reader.execute("SELECT count(*) FROM job_errors").fetchone() == (0,)

    store.look(second)

    found = place.server.execute(f"SELECT nspname FROM pg_namespace WHERE nspname LIKE '{place.address.schema}%'")
    assert found == [(place.address.schema,)]
    second.close()


def test_a_text_with_a_nul_is_written_without_it(place):
    failure = encode(JobError(job_id(1), 1, 1, "bo\0om", "", NOW))
    database = publish(place)

    database.write([ShardWrite(shard=0, rows=to_rows(0, [(keys.job_error(job_id(1), 1), failure)]))])

    assert place.read("SELECT error FROM job_errors") == [("bo\ufffdom",)]
    database.close()


def test_a_row_is_replaced_whole(place):
    database = publish(place)
    place.tamper("UPDATE jobs SET routing = 'x', agent_iteration = 7")

    database.write([a_turn(1)])

    assert place.read(f"SELECT routing, agent_iteration FROM jobs WHERE id = '{job_id(1)}'") == [(None, 0)]
    database.close()


def test_text_is_ordered_by_its_bytes(place):
    database = publish(place)
    database.write(
        [ShardWrite(shard=0, rows=to_rows(0, [(keys.job(one), encode(a_job(one))) for one in ("a", "B", "_", "é")]))]
    )

    found = [one for (one,) in place.read("SELECT id FROM jobs WHERE length(id) = 1 ORDER BY id")]

    assert found == sorted(found) == ["B", "_", "a", "é"]
    database.close()


# A server that goes away


def test_a_server_that_is_away_costs_the_shards_nothing_and_is_found_again(tmp_path, shards, fragile, monkeypatch):
    monkeypatch.setattr(databases, "AGAIN_S_MAX", 0.2)
    place = ServerPlace(fragile, "corvo")
    fragile.stop()
    with Mirror(tmp_path, place, shards):
        work(shards[0], 1)
        assert shards[0].pulls == [] and shards[0].scans == [], "nothing is asked that could not be kept"

        fragile.start()
        caught_up(place, shards)
        generation = generation_of(place)
        fragile.stop()
        work(shards[0], 100)
        fragile.start()

        caught_up(place, shards)
        assert generation_of(place) == generation, "it went on from its cursor"
    place.store().release()


def test_what_a_crash_of_the_server_forgot_is_told_again(tmp_path, shards, fragile):
    place = ServerPlace(fragile, "corvo")
    with Mirror(tmp_path, place, shards):
        for first in (1, 100):
            work(shards[0], first)
            caught_up(place, shards)

            fragile.stop(is_crash=True)
            fragile.start()

            caught_up(place, shards)
    place.store().release()


def test_readers_are_told_that_the_server_is_away_and_find_it_again(fragile):
    place = ServerPlace(fragile, "corvo")
    publish(place).close()
    read_db = ReadDb(place.address)
    ask = lambda: asyncio.run(read_db.ask(lambda reading: reading.rows(COUNT)))  # noqa: E731
    assert ask() == [(2,)]

    fragile.stop()
    with pytest.raises(Refusal) as refusal:
        ask()
    fragile.start()

    assert (refusal.value.code, refusal.value.retry_after_ms) == ("READ_DB_UNAVAILABLE", 1000)
    assert ask() == [(2,)]
    place.store().release()
    read_db.close()


def test_a_connection_that_died_unnoticed_costs_no_answer(fragile):
    place = ServerPlace(fragile, "corvo")
    publish(place).close()
    read_db = ReadDb(place.address)
    ask = lambda: asyncio.run(read_db.ask(lambda reading: reading.rows(COUNT)))  # noqa: E731
    ask()

    fragile.stop()
    fragile.start()

    assert ask() == [(2,)]
    place.store().release()
    read_db.close()


@pytest.fixture
def silence():
    """An address that accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield PostgresAddress(f"postgresql://corvo@127.0.0.1:{server.getsockname()[1]}/x?sslmode=disable", "corvo")


def test_a_server_that_says_nothing_is_not_waited_for(silence, monkeypatch):
    monkeypatch.setattr(postgres_connection, "CONNECT_S", 2)  # libpq's least
    read_db = ReadDb(silence)

    with pytest.raises(Refusal) as refusal:
        asyncio.run(read_db.ask(lambda reading: reading.rows(COUNT)))

    assert refusal.value.code == "READ_DB_UNAVAILABLE"
    read_db.close()


def test_a_server_that_does_not_keep_to_its_time_is_cut_off(place, monkeypatch):
    monkeypatch.setattr(answers_postgres, "GRACE_S", 0.1)
    publish(place).close()
    read_db = ReadDb(place.address, budget_ms=100)

    def stubborn(reading):
        reading._connection.execute("SET LOCAL statement_timeout = 0")
        reading._connection.execute("SELECT pg_sleep(30)")

    with pytest.raises(Refusal) as refusal:
        asyncio.run(read_db.ask(stubborn))

    assert refusal.value.code == "READ_DB_UNAVAILABLE"
    read_db.close()


def test_a_password_is_shown_to_nobody(postgres, capsys):
    address = parse_read_db("postgresql://me:s3cret@127.0.0.1:1/db")
    assert address is not None
    held = databases.Databases(PostgresStore(address, "c", 1))

    with pytest.raises(psycopg.Error) as error:
        held.open()
    held.lose(str(error.value))

    said = capsys.readouterr().out
    assert "read database out of reach" in said
    assert "s3cret" not in said + str(error.value) + repr(error.value)


def test_a_long_read_by_a_stranger_blocks_no_writer(tmp_path, place, shards):
    work(shards[0], 1)
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        with place._connect() as stranger:
            stranger.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            stranger.execute("SELECT * FROM jobs, job_errors, queues").fetchall()
            shards[0].apply(enqueue(500))

            caught_up(place, shards)
    assert eventually(lambda: threading.active_count() < 10)
