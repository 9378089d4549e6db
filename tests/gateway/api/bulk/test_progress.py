"""`GET /bulk/{id}/progress`: what listeners hear, that they share the questions, and how a stream ends."""

import pytest

from corvo.ops.bulk.cancel_bulk import CancelBulk
from corvo.queries.bulk import GetBulk
from corvo.rules.bulk import BULK_SHARD
from gateway.api.bulk import matching, progress
from tests.gateway.api.bulk.conftest import BulkHouse
from tests.gateway.api.test_events import Client, frames_of
from tests.gateway.asgi import a_scope, parts


class Listener(Client):
    def __init__(self, house: BulkHouse, bulk_id: str) -> None:
        super().__init__(house)
        self.task.cancel()
        scope = a_scope("GET", f"/api/v1/bulk/{bulk_id}/progress", [])
        self.task = house.runner.get_loop().create_task(house.app(scope, parts(then=self._hang_up), self._send))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, bulk_house: BulkHouse) -> None:
    monkeypatch.setattr(matching, "BULK_SLICE", 4)
    bulk_house.bulks.progress._look_every_s = 0.01


def begin(house: BulkHouse) -> str:
    reply = house.bulk("hold", filter={"state": ["pending"]}, **{"async": True})
    return str(reply.json["bulk_operation_id"])


def test_a_listener_hears_the_beginning_the_way_and_the_end(bulk_house: BulkHouse) -> None:
    bulk_house.fill(10)
    bulk_id = begin(bulk_house)
    listener = Listener(bulk_house, bulk_id).heard(1)

    bulk_house.work()
    listener.until(lambda client: client.task.done())

    events = listener.events
    assert listener.head["status"] == 200
    assert (events[0].event, events[0].data["status"]) == ("bulk.async.started", "queued")
    assert events[-1].event == "bulk.async.completed"
    last = events[-1].data
    assert (last["type"], last["task_id"], last["affected"], last["total"]) == (events[-1].event, bulk_id, 10, 10)
    assert (last["percent"], last["errors"]) == (100.0, 0)
    assert listener.is_ended


def test_progress_is_told_while_it_goes_on(bulk_house: BulkHouse) -> None:
    bulk_house.fill(6)
    bulk_id = begin(bulk_house)
    listener = Listener(bulk_house, bulk_id).heard(1)
    bulk = bulk_house.run(bulk_house.bulks.running.claim())

    listener.heard(2)
    assert (listener.events[1].event, listener.events[1].data["status"]) == ("bulk.async.progress", "running")
    assert bulk is not None
    bulk_house.run(bulk_house.bulks.running.work(bulk))
    listener.until(lambda client: client.task.done())


def test_who_comes_late_hears_the_end(bulk_house: BulkHouse) -> None:
    bulk_id = begin(bulk_house)
    bulk_house.work()

    listener = Listener(bulk_house, bulk_id).until(lambda client: client.task.done())

    assert [frame.event for frame in listener.events] == ["bulk.async.started", "bulk.async.completed"]


def test_a_cancelled_one_ends_with_that_word(bulk_house: BulkHouse) -> None:
    bulk_id = begin(bulk_house)
    listener = Listener(bulk_house, bulk_id).heard(1)

    bulk_house.shards.machines[BULK_SHARD].one(CancelBulk(bulk_id))
    listener.until(lambda client: client.task.done())

    assert listener.events[-1].event == "bulk.async.cancelled"


def test_many_listeners_cost_one_question(bulk_house: BulkHouse) -> None:
    bulk_id = begin(bulk_house)
    bulk_house.bulks.progress._look_every_s = 3_600.0
    bulk_house.shards.asked.clear()

    listeners = [Listener(bulk_house, bulk_id) for _ in range(20)]
    for listener in listeners:
        listener.heard(1)

    assert [ask for _, ask in bulk_house.shards.asked if isinstance(ask, GetBulk)] == [GetBulk(bulk_id)]
    assert bulk_house.bulks.progress.listeners == 20
    for listener in listeners:
        listener.leave()
    assert bulk_house.bulks.progress.listeners == 0


def test_a_stream_ends_when_the_gateway_drains(bulk_house: BulkHouse) -> None:
    listener = Listener(bulk_house, begin(bulk_house)).heard(1)

    bulk_house.draining.set()
    listener.until(lambda client: client.task.done())

    assert listener.is_ended


def test_silence_is_filled_with_signs_of_life(bulk_house: BulkHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "KEEPALIVE_S", 0.01)
    listener = Listener(bulk_house, begin(bulk_house)).heard(1)

    listener.until(lambda client: any(frame.comment for frame in frames_of(client.content)))
    listener.leave()


def test_an_unknown_operation_and_one_listener_too_many_are_refused(
    bulk_house: BulkHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bulk_house.get(f"/bulk/bulk_{1:026x}/progress").code == "BULK_NOT_FOUND"
    assert bulk_house.get("/bulk/nonsense/progress").code == "BULK_NOT_FOUND"
    assert bulk_house.get("/bulk/nonsense").code == "BULK_NOT_FOUND"

    bulk_id = begin(bulk_house)
    monkeypatch.setattr(progress, "CONNECTIONS_MAX", 0)
    assert bulk_house.get(f"/bulk/{bulk_id}/progress").code == "OVERLOADED"
