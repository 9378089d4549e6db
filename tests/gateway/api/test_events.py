"""Events over HTTP: the stream's frames and cursors, resuming, bounds, and how a stream ends."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.sharding import shard_of_queue
from corvo.queries.events import GetEvents
from gateway.api import events as events_module
from gateway.http import messages as http_module
from tests.gateway.asgi import a_scope, parts
from tests.gateway.search.conftest import Written
from tests.gateway.whole_house import WholeHouse
from tests.support.builders import NOW

QUEUES = ["a", "b", "c", "e", "g", "k"]  # two of each of three shards


@pytest.fixture
def shard_house(written: Written) -> Iterator[WholeHouse]:
    with WholeHouse(written.path, shard_count=3) as made:
        yield made


class Frame(msgspec.Struct):
    id: str = ""
    event: str = ""
    data: Any = None
    comment: str = ""

    @property
    def place(self) -> tuple[int, int]:
        return self.data["shard"], self.data["seq"]


def frames_of(content: bytes) -> list[Frame]:
    frames = []
    for block in content.decode().split("\n\n")[:-1]:
        frame = Frame()
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name == "data":
                frame.data = msgspec.json.decode(value)
            elif name in ("id", "event"):
                setattr(frame, name, value.strip())
            elif not name:
                frame.comment = value
        frames.append(frame)
    return frames


class Client:
    """One connection: `until` lets the application run until it has sent what is asked for."""

    def __init__(self, house: WholeHouse, query: bytes = b"", last_event_id: str = "") -> None:
        self.house = house
        self.content = b""
        self.head: Any = None
        self.is_ended = False
        self.gone = asyncio.Event()
        self.is_stuck = False
        headers = [(b"last-event-id", last_event_id.encode())] if last_event_id else []
        scope = a_scope("GET", "/api/v1/events", headers, query_string=query)
        loop = house.runner.get_loop()
        self.task = loop.create_task(house.app(scope, parts(then=self._hang_up), self._send))

    async def _hang_up(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.head = message
            return
        if self.is_stuck:
            await asyncio.Event().wait()
        self.content += message.get("body", b"")
        self.is_ended = not message.get("more_body")

    @property
    def events(self) -> list[Frame]:
        return [frame for frame in frames_of(self.content) if frame.event]

    @property
    def last_id(self) -> str:
        return [frame.id for frame in frames_of(self.content) if frame.id][-1]

    def until(self, condition: Any) -> "Client":
        async def wait() -> None:
            async with asyncio.timeout(10):
                while not condition(self):
                    await asyncio.sleep(0.001)

        self.house.runner.run(wait())
        return self

    def heard(self, count: int) -> "Client":
        return self.until(lambda client: len(client.events) >= count)

    def open(self) -> "Client":
        """Listening: all that was kept has been sent."""
        return self.until(lambda client: b"\nid:" in client.content and client.house.shards.parked)

    def leave(self) -> None:
        self.gone.set()
        self.until(lambda client: client.task.done())


def test_an_event_is_sent_when_it_happens(shard_house: WholeHouse) -> None:
    client = Client(shard_house).open()

    job_id = shard_house.enqueue("a")
    (event,) = client.heard(1).events

    assert client.head["status"] == 200
    assert dict(client.head["headers"])[b"content-type"] == b"text/event-stream"
    assert dict(client.head["headers"])[b"cache-control"] == b"no-store"
    assert event.event == "enqueued"
    assert event.data == {
        "seq": 1,
        "shard": event.data["shard"],
        "type": "enqueued",
        "at_ns": NOW,
        "job_id": job_id,
        "queue": "a",
    }
    assert f"{event.data['shard']}:1" in event.id.split(",")
    client.leave()


def test_without_a_cursor_it_begins_now_and_from_start_with_the_oldest(shard_house: WholeHouse) -> None:
    before = shard_house.enqueue("a")
    now, start = Client(shard_house).open(), Client(shard_house, b"from=start").heard(1)
    after = shard_house.enqueue("b")

    assert [event.data["job_id"] for event in start.heard(2).events] == [before, after]
    assert [event.data["job_id"] for event in now.heard(1).events] == [after]


def test_a_client_that_comes_back_with_any_id_hears_the_rest_once(shard_house: WholeHouse) -> None:
    for queue in QUEUES:
        shard_house.enqueue(queue)
        shard_house.fetch(queue)
    whole = Client(shard_house, b"from=start").heard(12).events
    everything = {event.place for event in whole}
    assert len(everything) == 12

    for number, event in enumerate(whole):
        rest = [] if number == 11 else Client(shard_house, b"from=start", event.id).heard(11 - number).events
        heard = [one.place for one in whole[: number + 1]] + [one.place for one in rest]
        assert len(heard) == 12 and set(heard) == everything
    by_query = Client(shard_house, b"last_event_id=" + whole[5].id.encode()).heard(6)
    by_after = Client(shard_house, b"after=" + whole[5].id.encode()).heard(6)
    assert {event.place for event in by_query.events} == {event.place for event in by_after.events}


def test_before_the_first_event_there_is_an_id_to_come_back_to(shard_house: WholeHouse) -> None:
    shard_house.enqueue("a")
    cursor = Client(shard_house).open().last_id
    missed = shard_house.enqueue("b")

    assert [event.data["job_id"] for event in Client(shard_house, b"", cursor).heard(1).events] == [missed]


def test_filters_are_applied_by_the_shards(shard_house: WholeHouse) -> None:
    client = Client(shard_house, b"from=start&queues=a,b&types=started,completed").open()
    for queue in ("a", "b", "c"):
        shard_house.enqueue(queue)
        shard_house.fetch(queue)

    assert [(e.event, e.data["queue"]) for e in client.heard(2).events] == [("started", "a"), ("started", "b")]


def test_one_job_can_be_followed(shard_house: WholeHouse) -> None:
    shard_house.enqueue("a")
    job_id = shard_house.enqueue("b")
    shard_house.fetch("b")

    client = Client(shard_house, b"from=start&job_ids=" + job_id.encode()).heard(2)

    assert [event.event for event in client.events] == ["enqueued", "started"]


def test_what_was_kept_comes_in_the_order_of_time(shard_house: WholeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "EVENTS_HELD", 12)
    for number in range(20):
        for machine in shard_house.shards.machines:
            machine.now = NOW + number
        shard_house.enqueue(QUEUES[number * 7 % 6])

    client = Client(shard_house, b"from=start").heard(20)

    assert [event.data["at_ns"] - NOW for event in client.events] == list(range(20))


def test_what_was_kept_is_asked_for_once_and_then_each_shard_is_followed(shard_house: WholeHouse) -> None:
    for queue in QUEUES:
        shard_house.enqueue(queue)
    shard_house.shards.asked.clear()

    Client(shard_house, b"from=start").heard(len(QUEUES)).open()

    asked = [(shard, ask.wait_ms > 0) for shard, ask in shard_house.shards.asked if isinstance(ask, GetEvents)]
    assert asked == [(0, False), (1, False), (2, False), (0, True), (1, True), (2, True)]


def test_a_connection_holds_few_events_however_many_shards_there_are(
    shard_house: WholeHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "EVENTS_HELD", 12)

    Client(shard_house).open().leave()

    assert {ask.events_max for _, ask in shard_house.shards.asked if isinstance(ask, GetEvents)} == {4}


def test_a_gap_is_told(shard_house: WholeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corvo.state.event_log.EVENTS_KEPT", 2)
    cursor = Client(shard_house).open().last_id
    shard_house.enqueue("a")
    shard = Client(shard_house, b"from=start").heard(1).events[0].data["shard"]
    for _ in range(4):
        shard_house.enqueue("a")

    gap, *rest = Client(shard_house, b"", cursor).heard(3).events

    assert (gap.event, gap.data) == ("gap", {"shard": shard, "missed": 3})
    assert [event.data["seq"] for event in rest] == [4, 5]
    again = Client(shard_house, b"", gap.id).heard(2).events
    assert [event.data["seq"] for event in again] == [4, 5], "told once"
    assert [event.event for event in Client(shard_house, b"from=start").heard(2).events] == ["enqueued", "enqueued"]


def test_a_quiet_stream_is_kept_alive_with_its_cursor(shard_house: WholeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "KEEPALIVE_S", 0.01)
    client = Client(shard_house, b"types=completed").open()
    shard_house.enqueue("a")

    client.until(lambda client: client.content.count(b":keepalive\nid: ") > 2)

    assert client.events == []


def test_a_client_that_hangs_up_leaves_nothing_behind(shard_house: WholeHouse) -> None:
    client = Client(shard_house).open()
    assert len(shard_house.listening.open) == 1

    client.leave()

    assert len(shard_house.listening.open) == 0
    assert shard_house.shards.parked == {}
    assert len(shard_house.shards.recalled) == 3


def test_a_gateway_that_drains_ends_its_streams(shard_house: WholeHouse) -> None:
    client = Client(shard_house).open()

    shard_house.draining.set()
    client.until(lambda client: client.task.done())

    assert client.is_ended, "an end, not a broken connection"
    assert shard_house.shards.parked == {}


def test_a_client_that_does_not_read_holds_up_no_gateway_that_drains(
    shard_house: WholeHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "LAST_WORD_S", 0.05)
    client = Client(shard_house).open()
    client.is_stuck = True

    shard_house.draining.set()

    client.until(lambda client: client.task.done())


def test_a_client_that_does_not_read_is_closed(shard_house: WholeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "WRITE_S", 0.05)
    client = Client(shard_house).open()
    client.is_stuck = True

    shard_house.enqueue("a")
    client.until(lambda client: client.task.done())

    assert not client.is_ended
    assert (len(shard_house.listening.open), shard_house.shards.parked) == (0, {})


def test_more_connections_than_the_bound_are_refused(shard_house: WholeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "CONNECTIONS_MAX", 1)
    first = Client(shard_house).open()

    refused = shard_house.get("/events")
    first.leave()

    assert (refused.status, refused.code) == (429, "OVERLOADED")
    assert refused.json["retry_after_ms"] > 0
    Client(shard_house).open().leave()


def test_a_shard_that_cannot_be_asked_is_a_refusal_at_first_and_a_pause_later(
    shard_house: WholeHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "ASK_AGAIN_S", 0.01)
    monkeypatch.setattr(events_module, "WAIT_MS", 20)
    client = Client(shard_house).open()
    shard_house.shards.refusing[0] = Refusal("SHARD_UNAVAILABLE", "shard 0 is not reachable; try again")

    refused = shard_house.runner.run(_status(shard_house))
    elsewhere = shard_house.enqueue(next(q for q in QUEUES if shard_of_queue(q, 3) != 0))
    client.heard(1)
    del shard_house.shards.refusing[0]
    here = shard_house.enqueue(next(q for q in QUEUES if shard_of_queue(q, 3) == 0))

    assert refused == 503
    assert [event.data["job_id"] for event in client.heard(2).events] == [elsewhere, here]
    client.leave()


async def _status(house: WholeHouse) -> int:
    status = 0

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    await house.app(a_scope("GET", "/api/v1/events", []), parts(), send)
    return status


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (b"after=x", "after"),
        (b"last_event_id=9:1", "last_event_id"),
        (b"types=finished", "types"),
        (b"queues=%20", "queues"),
        (b"from=yesterday", "from"),
    ],
)
def test_a_query_that_cannot_be_meant_is_refused(shard_house: WholeHouse, query: bytes, field: str) -> None:
    refused = shard_house.ask(a_scope("GET", "/api/v1/events", [], query_string=query))

    assert (refused.status, refused.code, refused.json["field"]) == (400, "VALIDATION_ERROR", field)


def test_an_id_that_is_none_is_refused(shard_house: WholeHouse) -> None:
    headers = [(b"last-event-id", b"\xffnonsense")]

    refused = shard_house.ask(a_scope("GET", "/api/v1/events", headers))

    assert (refused.status, refused.json["field"]) == (400, "Last-Event-ID")


# Page by page


def page(house: WholeHouse, query: str = "") -> Any:
    reply = house.ask(a_scope("GET", "/api/v1/cluster/events", [], query_string=query.encode()))
    assert reply.status == 200, reply
    return reply.json


def test_pages_follow_each_other_over_all_shards(shard_house: WholeHouse) -> None:
    jobs = [shard_house.enqueue(queue) for queue in QUEUES * 3]

    found, cursor = [], ""
    for _ in range(99):
        answer = page(shard_house, f"limit=5&after_seq={cursor}")
        found += [event["job_id"] for event in answer["events"]]
        cursor = answer["next"]
        if not answer.get("has_more"):
            break

    assert {shard_of_queue(queue, 3) for queue in QUEUES} == {0, 1, 2}
    assert sorted(found) == sorted(jobs)
    assert page(shard_house, f"after_seq={cursor}") == {"events": [], "next": cursor}
    late = shard_house.enqueue("a")
    assert [event["job_id"] for event in page(shard_house, f"after_seq={cursor}")["events"]] == [late]
    assert len(page(shard_house, "queues=a&types=enqueued")["events"]) == 4


def test_a_page_holds_a_hundred_unless_told(house: WholeHouse) -> None:
    for number in range(120):
        house.enqueue("a", payload=number)

    first = page(house)

    assert (len(first["events"]), first["next"], first["has_more"]) == (100, "0:100", True)
    assert [event["seq"] for event in page(house, "after_seq=100&limit=1000")["events"]] == list(range(101, 121))


def test_a_page_says_what_was_missed(house: WholeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corvo.state.event_log.EVENTS_KEPT", 2)
    for _ in range(5):
        house.enqueue("a")

    assert page(house, "after_seq=1")["missed"] == 2
    assert "missed" not in page(house)


def test_zero_is_the_beginning_of_all_shards(shard_house: WholeHouse) -> None:
    jobs = {shard_house.enqueue(queue) for queue in QUEUES}

    assert {event["job_id"] for event in page(shard_house, "after_seq=0")["events"]} == jobs


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "after_seq=x", "nonsense=1"])
def test_a_page_that_cannot_be_meant_is_refused(house: WholeHouse, query: str) -> None:
    refused = house.ask(a_scope("GET", "/api/v1/cluster/events", [], query_string=query.encode()))

    assert (refused.status, refused.code) == (400, "VALIDATION_ERROR")


def test_why_is_answered_by_the_shard_of_the_job(house: WholeHouse) -> None:
    job_id = house.enqueue("a")

    answer = house.get(f"/jobs/{job_id}/why")

    assert (answer.status, answer.json["reason"]) == (200, "NO_WORKER")
    assert house.get("/jobs/s00_job_" + "0" * 26 + "/why").code == "JOB_NOT_FOUND"
