"""The outbox: jobs of committed transactions alone, and each once, however often a relay dies."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, Table, create_engine, event, func, insert, select
from sqlalchemy.exc import OperationalError

from corvo.client.bodies import EnqueueBody
from corvo.client.contrib.outbox import Relay, outbox_table, put, rows_refused
from corvo.client.errors import Unreachable
from corvo.client.http import Client
from corvo.testing.server import CorvoTestServer

pytestmark = pytest.mark.system
metadata = MetaData()
outbox = outbox_table(metadata)
orders = Table("orders", metadata, Column("id", Integer, primary_key=True))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path}/shop.db")
    metadata.create_all(engine)
    yield engine
    engine.dispose()


def waiting(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(outbox)).scalar_one()


def order(engine: Engine, number: int) -> None:
    with engine.begin() as connection:
        connection.execute(insert(orders).values(id=number))
        put(connection, outbox, EnqueueBody(queue="orders.ship", payload={"order": number}, max_retries=7))


def payloads(server: CorvoTestServer) -> list[dict[str, int]]:
    return [job.payload for job in server.jobs("orders.ship")]


def test_what_is_committed_becomes_a_job_and_what_is_rolled_back_does_not(
    engine: Engine, corvo_server: CorvoTestServer
) -> None:
    order(engine, 1)
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        put(connection, outbox, EnqueueBody(queue="orders.ship", payload={"order": 2}))
        raise ZeroDivisionError
    relay = Relay(engine, outbox, corvo_server.client)

    assert (relay.run_once(), relay.run_once()) == (1, 0)

    assert payloads(corvo_server) == [{"order": 1}]
    assert corvo_server.jobs("orders.ship")[0].max_retries == 7
    assert waiting(engine) == 0


def test_a_relay_that_dies_after_the_enqueue_makes_no_second_job(engine: Engine, corvo_server: CorvoTestServer) -> None:
    for number in range(20):
        order(engine, number)
    deaths = 3

    def die(connection: object, cursor: object, statement: str, *_: object) -> None:
        nonlocal deaths
        if deaths and statement.startswith("DELETE"):
            deaths -= 1
            raise OperationalError("the machine is gone", None, ConnectionError())

    event.listen(engine, "before_cursor_execute", die)
    relay = Relay(engine, outbox, corvo_server.client)
    for _ in range(3):
        with pytest.raises(OperationalError):
            relay.run_once()
        assert waiting(engine) == 20

    assert relay.run_once() == 20

    assert payloads(corvo_server) == [{"order": number} for number in range(20)]


def test_without_a_server_the_rows_stay(engine: Engine, corvo_server: CorvoTestServer) -> None:
    order(engine, 1)
    with Client("http://127.0.0.1:9", waits_for_server=False) as nobody, pytest.raises(Unreachable):
        Relay(engine, outbox, nobody).run_once()

    rounds = iter([False, False, True])
    Relay(engine, outbox, corvo_server.client).run(lambda: next(rounds), pause_s=0)

    assert payloads(corvo_server) == [{"order": 1}]


def test_a_job_that_is_refused_is_set_aside_and_holds_up_no_other(
    engine: Engine, corvo_server: CorvoTestServer
) -> None:
    order(engine, 1)
    with engine.begin() as connection:
        key = put(connection, outbox, EnqueueBody(queue="orders.ship", max_retries=-1))
    order(engine, 3)

    assert Relay(engine, outbox, corvo_server.client).run_once() == 2

    assert payloads(corvo_server) == [{"order": 1}, {"order": 3}]
    with engine.connect() as connection:
        [(refused, _, reason)] = rows_refused(connection, outbox)
    assert refused == key and reason.startswith("VALIDATION_ERROR: ")
