"""The stream over fake shards: a conversation of frames, without a server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.limits import SMALL_JSON_BYTES_MAX
from corvo.model.sharding import shard_of_queue
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fetch import Fetch
from corvo.rules.batches import BatchSpec
from gateway.api import stream
from gateway.metrics import Metrics
from tests.gateway.asgi import PAYLOAD_BYTES_MAX, Draining, a_gateway
from tests.gateway.fake_shards import FakeShards, a_call
from tests.support.builders import job_id

NEAR, FAR = "mail", next(f"far.{n}" for n in range(99) if shard_of_queue(f"far.{n}", 4) != shard_of_queue("mail", 4))


MSGPACK = "corvo.msgpack.v1"


class Talk:
    """A client's end of a stream."""

    def __init__(self, *subprotocols: str, is_text: bool = False) -> None:
        self._is_text = is_text
        self._format = msgspec.msgpack if MSGPACK in subprotocols else msgspec.json
        self.shards = FakeShards()
        self.draining = Draining()
        self.app = a_gateway(self.shards, self.draining, Metrics())
        self._to_server: asyncio.Queue[Any] = asyncio.Queue()
        self._to_client: asyncio.Queue[Any] = asyncio.Queue()
        self._subprotocols = list(subprotocols)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Talk":
        scope = {
            "type": "websocket",
            "query_string": b"",
            "path": stream.PATH,
            "headers": [],
            "subprotocols": self._subprotocols,
        }
        await self._to_server.put({"type": "websocket.connect"})
        self._task = asyncio.create_task(self.app(scope, self._to_server.get, self._to_client.put))
        self.opening = await self._next()
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._task is not None
        await self._to_server.put({"type": "websocket.disconnect", "code": 1000})
        async with asyncio.timeout(5):
            await self._task

    async def send(self, frame: Any) -> None:
        raw = frame if isinstance(frame, bytes) else self._format.encode(frame)
        content = {"text": raw.decode()} if self._is_text else {"bytes": raw}
        await self._to_server.put({"type": "websocket.receive", **content})

    async def answer(self) -> Any:
        message = await self._next()
        assert message["type"] == "websocket.send", message
        return self._format.decode(message["bytes"])

    async def ask(self, frame: Any) -> Any:
        await self.send(frame)
        return await self.answer()

    async def _next(self) -> Any:
        async with asyncio.timeout(5):
            return await self._to_client.get()

    next_message = _next


def talking(test: Callable[[Talk], Awaitable[None]], *subprotocols: str, is_text: bool = False) -> None:
    async def run() -> None:
        async with Talk(*subprotocols, is_text=is_text) as talk:
            await test(talk)

    asyncio.run(run())


def talking_in_every_format(test: Callable[[Talk], Awaitable[None]]) -> None:
    for is_text in (True, False):
        talking(test, is_text=is_text)
    talking(test, MSGPACK)


def test_a_whole_life_in_two_frames() -> None:
    async def test(talk: Talk) -> None:
        fetch = {"queues": [NEAR], "worker_id": "w1", "count": 5}
        first = await talk.ask({"id": 7, "enqueue": [{"queue": NEAR, "payload": {"n": 1}}], "fetch": fetch})
        [job] = first["jobs"]
        assert first == {
            "id": 7,
            "enqueued": [{"job_id": job["job_id"], "status": "pending", "unique_existing": False}],
            "jobs": [job],
        }
        assert (job["payload"], job["attempt"], job["lease_token"]) == ({"n": 1}, 1, 1)

        second = await talk.ask({"id": "b", "ack": [{"job_id": job["job_id"], "lease_token": 1}], "fetch": fetch})

        assert second == {"id": "b", "acked": [{"status": "ok"}], "jobs": []}

    talking(test)


def test_what_a_frame_carries_is_applied_before_its_fetch_in_one_go_where_it_is_on_one_shard() -> None:
    async def test(talk: Talk) -> None:
        await talk.ask({"id": 1, "enqueue": [{"queue": NEAR}], "fetch": {"queues": [NEAR], "worker_id": "w"}})
        assert [type(ask) for _, ask in talk.shards.asked] == [Enqueue, Fetch]
        assert [ask.is_after_operations for _, ask in talk.shards.asked if isinstance(ask, Fetch)] == [True]

        talk.shards.asked.clear()
        await talk.ask({"id": 1, "fetch": {"queues": [NEAR], "worker_id": "w"}})
        assert [ask.is_after_operations for _, ask in talk.shards.asked if isinstance(ask, Fetch)] == [False]

        both = {
            "id": 2,
            "enqueue": [{"queue": NEAR}, {"queue": FAR}],
            "fetch": {"queues": [FAR, NEAR], "worker_id": "w"},
        }
        answer = await talk.ask(both)
        assert [job["queue"] for job in answer["jobs"]] == [FAR]

    talking(test)


def test_what_a_frame_settles_is_applied_before_what_it_enqueues() -> None:
    async def test(talk: Talk) -> None:
        unique = {"queue": NEAR, "unique_key": "k"}
        fetch = {"queues": [NEAR], "worker_id": "w"}
        [job] = (await talk.ask({"id": 1, "enqueue": [unique], "fetch": fetch}))["jobs"]
        answer = await talk.ask({"id": 2, "enqueue": [unique], "ack": [{"job_id": job["job_id"]}], "fetch": fetch})

        assert answer["enqueued"][0]["unique_existing"] is False
        assert [one["job_id"] for one in answer["jobs"]] == [answer["enqueued"][0]["job_id"]]

    talking(test)


def test_items_are_answered_for_themselves() -> None:
    async def test(talk: Talk) -> None:
        large = {"queue": NEAR, "payload": "x" * PAYLOAD_BYTES_MAX}
        enqueue = [{"queue": NEAR}, large, {"queue": FAR, "retry_base_delay": "soon"}]
        answer = await talk.ask({"id": 1, "enqueue": enqueue, "ack": [{"job_id": "nobody"}, {"job_id": job_id(9)}]})

        assert [one.get("code") for one in answer["enqueued"]] == [None, "PAYLOAD_TOO_LARGE", "VALIDATION_ERROR"]
        assert answer["enqueued"][2]["error"].startswith("enqueue[2].retry_base_delay")
        assert [one["code"] for one in answer["acked"]] == ["JOB_NOT_FOUND", "JOB_NOT_FOUND"]

    talking(test)


def test_a_shard_that_refuses_costs_only_its_items() -> None:
    async def test(talk: Talk) -> None:
        talk.shards.refusing[shard_of_queue(FAR, 4)] = Refusal("SHARD_UNAVAILABLE", "gone")
        answer = await talk.ask({"id": 1, "enqueue": [{"queue": NEAR}, {"queue": FAR}]})

        assert [one.get("code") for one in answer["enqueued"]] == [None, "SHARD_UNAVAILABLE"]

    talking(test)


def test_fails_and_heartbeats_are_answered_as_over_http() -> None:
    async def test(talk: Talk) -> None:
        fetch = {"queues": [NEAR], "worker_id": "w", "count": 2}
        jobs = (await talk.ask({"id": 1, "enqueue": [{"queue": NEAR}] * 2, "fetch": fetch}))["jobs"]
        one, two = (job["job_id"] for job in jobs)

        beat = {one: {"lease_token": 1, "progress": {"current": 1}}, two: {"lease_token": 9}, "stranger": {}}
        answer = await talk.ask(
            {"id": 2, "heartbeat": beat, "fail": [{"job_id": one, "lease_token": 1, "error": "no"}]}
        )

        assert {name: pulse["status"] for name, pulse in answer["heartbeat"].items()} == {
            one: "lease_lost",  # its failure stands before the heartbeat in the frame
            two: "lease_lost",
            "stranger": "cancel",
        }
        assert (answer["failed"][0]["status"], answer["failed"][0]["attempts_remaining"]) == ("retrying", 2)

    talking(test)


def test_a_fetch_that_waits_is_passed_by_other_frames_and_answered_when_its_job_comes() -> None:
    async def test(talk: Talk) -> None:
        await talk.send({"id": "waits", "fetch": {"queues": [NEAR], "worker_id": "w", "wait_ms": 60_000}})
        assert (await talk.ask({"id": "passes", "enqueue": [{"queue": FAR}]}))["id"] == "passes"

        await talk.send({"id": "brings", "enqueue": [{"queue": NEAR}]})
        answers = [await talk.answer(), await talk.answer()]

        assert {answer["id"]: len(answer.get("jobs", [])) for answer in answers} == {"brings": 0, "waits": 1}

    talking(test)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "PARSE_ERROR"),
        (b"[]", "VALIDATION_ERROR"),
        (b"{}", "VALIDATION_ERROR"),
        (b'{"id": null}', "VALIDATION_ERROR"),
        (b'{"id": [1], "ack": []}', "VALIDATION_ERROR"),
        (b'{"id": 1, "enqueue": ' + b"[" * 5_000, "PARSE_ERROR"),
        (b'{"id": 1, "enqueue": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", "PARSE_ERROR"),
        (b'{"id": 1, "enqueue": [{"queue": "a"}}', "PARSE_ERROR"),
        (b"\xff", "PARSE_ERROR"),
    ],
)
def test_a_frame_whose_id_cannot_be_read_is_answered_and_the_stream_goes_on(raw: bytes, code: str) -> None:
    async def test(talk: Talk) -> None:
        answer = await talk.ask(raw)
        assert (answer["id"], answer["code"]) == (None, code)
        assert talk.shards.asked == []
        assert (await talk.ask({"id": 2}))["id"] == 2

    talking(test)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"shout": 2}, "shout"),
        ({"enqueue": 5}, "enqueue"),
        ({"ack": {"job_id": "x"}}, "ack"),
        ({"fail": "no"}, "fail"),
        ({"heartbeat": []}, "heartbeat"),
        ({"ack": [{"job_id": job_id(1)}] * 513}, "ack"),
    ],
)
def test_a_frame_of_the_wrong_shape_is_refused_whole_under_its_id(wrong: dict[str, Any], field: str) -> None:
    async def test(talk: Talk) -> None:
        answer = await talk.ask({"id": "seven", "enqueue": [{"queue": NEAR}], **wrong})
        assert (answer["id"], answer["code"]) == ("seven", "VALIDATION_ERROR")
        assert answer["error"].startswith(f"{field}: ")
        assert talk.shards.asked == [], "a frame that is refused has done nothing"

    talking_in_every_format(test)


def test_a_bad_item_is_answered_in_its_place_and_the_others_are_served() -> None:
    async def test(talk: Talk) -> None:
        fetch = {"queues": [NEAR], "worker_id": "w", "count": 9}
        claimed = (await talk.ask({"id": 1, "enqueue": [{"queue": NEAR}] * 4, "fetch": fetch}))["jobs"]
        one, two, three, four = (job["job_id"] for job in claimed)

        answer = await talk.ask(
            {
                "id": 7,
                "enqueue": [{"queue": "../x"}, {"queue": NEAR}, 5, {"queue": NEAR, "shout": 1}],
                "ack": [{"job_id": one, "lease_token": "1"}, {"job_id": two, "lease_token": 1}, {}],
                "fail": [{"job_id": one, "error": 5}, {"job_id": three}, {"job_id": four, "retry_after": "soon"}],
                "heartbeat": {one: {"lease_token": 0}, two: 5, three: {"progress": 1}, four: {"lease_token": 1}},
                "fetch": fetch,
            }
        )

        assert answer["id"] == 7
        assert [item.get("code") for item in answer["enqueued"]] == [
            "VALIDATION_ERROR",
            None,
            "VALIDATION_ERROR",
            "VALIDATION_ERROR",
        ]
        assert [item["error"].split(":")[0] for item in answer["enqueued"] if "error" in item] == [
            "enqueue[0].queue",
            "enqueue[2]",
            "enqueue[3].shout",
        ]
        assert [item.get("status") or item["error"].split(":")[0] for item in answer["acked"]] == [
            "ack[0].lease_token",
            "ok",
            "ack[2].job_id",
        ]
        assert [item.get("status") or item["error"].split(":")[0] for item in answer["failed"]] == [
            "fail[0].error",
            "retrying",
            "fail[2].retry_after",
        ]
        assert {
            name: item.get("status") or item["error"].split(":")[0] for name, item in answer["heartbeat"].items()
        } == {
            one: f"heartbeat.{one}.lease_token",
            two: f"heartbeat.{two}",
            three: f"heartbeat.{three}.progress",
            four: "ok",
        }
        assert [job["job_id"] for job in answer["jobs"]] == [answer["enqueued"][1]["job_id"]]

    talking_in_every_format(test)


@pytest.mark.parametrize(
    ("kind", "items", "told"),
    [
        ("ack", [{"job_id": job_id(9), "checkpoint": "x" * SMALL_JSON_BYTES_MAX}], "acked"),
        ("fail", [{"job_id": job_id(9), "snooze": "later"}], "failed"),
    ],
)
def test_what_only_planning_finds_wrong_is_the_items_too(kind: str, items: list[Any], told: str) -> None:
    async def test(talk: Talk) -> None:
        answer = await talk.ask({"id": 1, kind: items, "enqueue": [{"queue": NEAR}]})
        assert "status" in answer["enqueued"][0]
        assert answer[told][0]["error"].startswith(f"{kind}[0].")

    talking_in_every_format(test)


@pytest.mark.parametrize(
    "fetch",
    [
        {"queues": [], "worker_id": "w"},
        {"queues": [NEAR], "worker_id": "w", "count": 0},
        {"queues": [NEAR], "worker_id": "w", "weights": {NEAR: 3}},
        5,
    ],
)
def test_a_bad_fetch_costs_the_jobs_and_nothing_else(fetch: Any) -> None:
    async def test(talk: Talk) -> None:
        answer = await talk.ask({"id": 7, "enqueue": [{"queue": NEAR}], "fetch": fetch})

        assert (answer["id"], answer["code"]) == (7, "VALIDATION_ERROR")
        assert answer["error"].startswith("fetch")
        assert answer["enqueued"][0]["status"] == "pending"
        assert "jobs" not in answer

    talking_in_every_format(test)


def test_a_fetch_that_a_shard_refuses_leaves_the_other_results() -> None:
    async def test(talk: Talk) -> None:
        talk.shards.refusing[shard_of_queue(FAR, 4)] = Refusal("OVERLOADED", "full", retry_after_ms=20)
        fetch = {"queues": [FAR], "worker_id": "w"}
        answer = await talk.ask({"id": 7, "enqueue": [{"queue": NEAR}], "fetch": fetch})

        assert answer["enqueued"][0]["status"] == "pending"
        assert (answer["id"], answer["code"], answer["retry_after_ms"]) == (7, "OVERLOADED", 20)

    talking_in_every_format(test)


def test_a_payload_that_is_nested_too_deep_is_refused_alone() -> None:
    async def test(talk: Talk) -> None:
        deep = b"[" * 100 + b"]" * 100
        raw = b'{"id": 1, "enqueue": [{"queue": "mail", "payload": %b}, {"queue": "mail"}]}' % deep
        answer = await talk.ask(raw)

        assert [one.get("code") for one in answer["enqueued"]] == ["PARSE_ERROR", None]

    talking(test)


def test_too_many_frames_under_way_are_answered_overloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "FRAMES_PER_STREAM", 2)

    async def test(talk: Talk) -> None:
        wait = {"queues": [NEAR], "worker_id": "w", "wait_ms": 60_000}
        await talk.send({"id": 1, "fetch": wait})
        await talk.send({"id": 2, "fetch": wait})

        answer = await talk.ask({"id": 3, "enqueue": [{"queue": NEAR}]})

        assert (answer["id"], answer["code"]) == (3, "OVERLOADED")
        assert answer["retry_after_ms"] > 0
        assert talk.shards.machines[shard_of_queue(NEAR, 4)].tables.find_queue(NEAR) is None

    talking(test)


def test_a_client_that_ignores_the_hint_is_not_read_before_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "FRAMES_PER_STREAM", 0)
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    async def test(talk: Talk) -> None:
        monkeypatch.setattr(stream.asyncio, "sleep", rest)
        first = await talk.ask({"id": 1})
        second = await talk.ask({"id": 2})

        assert [first["code"], second["code"]] == ["OVERLOADED"] * 2
        assert len(rests) >= 1 and 0 < rests[0] <= first["retry_after_ms"] / 1000

    talking(test)


def test_draining_says_so_answers_what_is_under_way_and_closes() -> None:
    async def test(talk: Talk) -> None:
        await talk.send({"id": 1, "fetch": {"queues": [NEAR], "worker_id": "w", "wait_ms": 60_000}})
        while not talk.shards.parked:
            await asyncio.sleep(0)
        talk.app._streams.drain()
        talk.draining.set()

        answers = [await talk.answer(), await talk.answer()]
        closing = await talk.next_message()

        assert [answer.get("code") for answer in answers] == ["DRAINING", None]
        assert answers[1] == {"id": 1, "jobs": []}
        assert (closing["type"], closing["code"]) == ("websocket.close", 1001)

    talking(test)


def test_a_client_that_leaves_takes_its_waits_with_it() -> None:
    async def run() -> None:
        async with Talk() as talk:
            await talk.send({"id": 1, "fetch": {"queues": [NEAR], "worker_id": "w", "wait_ms": 60_000}})
            while not talk.shards.parked:
                await asyncio.sleep(0)
        async with asyncio.timeout(5):
            while talk.app._streams.frames:
                await asyncio.sleep(0)

        assert talk.shards.parked == {}, "nobody claims for a client that is gone"

    asyncio.run(run())


def test_message_pack_is_spoken_when_it_is_asked_for() -> None:
    async def test(talk: Talk) -> None:
        assert talk.opening == {"type": "websocket.accept", "subprotocol": "corvo.msgpack.v1"}
        frame = {"id": 1, "enqueue": [{"queue": NEAR, "payload": {"n": 2**40}}]}
        await talk.send(msgspec.msgpack.encode(frame | {"fetch": {"queues": [NEAR], "worker_id": "w"}}))
        answer = msgspec.msgpack.decode((await talk.next_message())["bytes"])

        assert (answer["id"], answer["jobs"][0]["payload"]) == (1, {"n": 2**40})

    talking(test, "chat", MSGPACK)


def test_what_json_cannot_hold_is_refused_in_message_pack() -> None:
    async def test(talk: Talk) -> None:
        for raw in (b"\xc1", msgspec.msgpack.encode(float("nan")), b"\x81\xc4\x01x\x01"):
            answer = await talk.ask(raw)
            assert (answer["id"], answer["code"]) == (None, "PARSE_ERROR")

        whole = await talk.ask({"id": 1, "enqueue": b"bytes"})
        assert (whole["id"], whole["code"]) == (1, "VALIDATION_ERROR")

        payloads = [1, b"bytes", float("nan"), {"deep": [float("inf")]}, 2]
        answer = await talk.ask({"id": 2, "enqueue": [{"queue": NEAR, "payload": payload} for payload in payloads]})
        assert [one.get("code") for one in answer["enqueued"]] == [None, *["PARSE_ERROR"] * 3, None]

    talking(test, MSGPACK)


def test_a_protocol_that_nobody_speaks_is_refused() -> None:
    async def run() -> None:
        async with Talk("chat") as talk:
            assert (talk.opening["type"], talk.opening["code"]) == ("websocket.close", 1002)

    asyncio.run(run())


def test_jobs_of_a_batch_and_jobs_that_wait_are_answered_in_their_places() -> None:
    async def test(talk: Talk) -> None:
        made = await talk.ask({"id": 1, "enqueue": [{"queue": NEAR}, {"queue": FAR}]})
        first, unknown = made["enqueued"][0]["job_id"], job_id(9, shard=1)
        batch = "s02_batch_" + "1" * 26
        talk.shards.machines[2].one(AddToBatch(1, batch, BatchSpec(), False, []))
        items = [
            {"queue": NEAR, "batch_id": batch},
            {"queue": FAR, "depends_on": [first]},
            {"queue": FAR},
            {"queue": FAR, "batch_id": batch, "unique_key": "k"},
            {"queue": NEAR, "depends_on": [unknown]},
            {"queue": FAR, "batch_id": batch, "unique_key": "k"},
            {"queue": NEAR, "batch_id": "nonsense"},
            {"queue": NEAR, "batch_id": "s01_batch_" + "1" * 26},
        ]
        answer = await talk.ask({"id": 2, "enqueue": items, "fetch": {"queues": [FAR], "worker_id": "w", "count": 9}})

        outcomes = answer["enqueued"]
        told = [outcome.get("status") or outcome["code"] for outcome in outcomes]
        assert told[:4] == ["pending", "scheduled", "pending", "pending"]
        assert told[4:] == ["VALIDATION_ERROR", "duplicate", "BATCH_NOT_FOUND", "BATCH_NOT_FOUND"]
        assert "enqueue[4].depends_on" in outcomes[4]["error"]
        assert outcomes[5]["job_id"] == outcomes[3]["job_id"]
        adding = [ask for _, ask in talk.shards.asked if isinstance(ask, AddToBatch)]
        assert [len(ask.jobs) for ask in adding] == [3, 1], "one operation for each batch"
        fetched = {job["job_id"] for job in answer["jobs"]}
        assert fetched == {made["enqueued"][1]["job_id"], outcomes[2]["job_id"], outcomes[3]["job_id"]}

    talking(test)


def test_a_sealed_batch_refuses_its_jobs_and_no_others() -> None:
    async def test(talk: Talk) -> None:
        batch = "s02_batch_" + "1" * 26
        talk.shards.machines[2].one(AddToBatch(1, batch, BatchSpec(), True, []))
        answer = await talk.ask({"id": 1, "enqueue": [{"queue": NEAR, "batch_id": batch}, {"queue": NEAR}]})

        assert [one.get("code") for one in answer["enqueued"]] == ["BATCH_SEALED", None]

    talking(test)


def test_a_fetch_in_a_frame_may_wish_for_what_any_fetch_may() -> None:
    async def test(talk: Talk) -> None:
        wishes = {"strategy": "weighted", "weights": {NEAR: 3}, "two_phase": True, "pool_size": 4, "version": "1.0"}
        await talk.ask({"id": 1, "fetch": {"queues": [NEAR, NEAR], "worker_id": "w", **wishes}})
        await talk.ask({"id": 2, "fetch": {"queues": [NEAR, FAR], "worker_id": "w", **wishes}})
        fetches = [ask for _, ask in talk.shards.asked if isinstance(ask, Fetch)]
        assert all(ask.is_two_phase and (ask.pool_size, ask.version) == (4, "1.0") for ask in fetches)

        talk.shards.asked.clear()
        refused = {"queues": [NEAR], "worker_id": "w", "weights": {NEAR: 3}}
        answer = await talk.ask({"id": 3, "fetch": refused})
        assert (answer["id"], answer["code"]) == (3, "VALIDATION_ERROR")
        assert talk.shards.asked == []

    talking(test)


def test_a_client_that_leaves_while_its_jobs_are_planned_apart_leaves_no_task_behind() -> None:
    async def test() -> None:
        before = asyncio.all_tasks()
        async with Talk() as talk:
            talk.shards.ask = lambda shard, ask: a_call(shard, ask, asyncio.Event().wait())  # type: ignore[method-assign]
            await talk.send({"id": 1, "enqueue": [{"queue": NEAR}, {"queue": NEAR, "depends_on": [job_id(1)]}]})
            while len(asyncio.all_tasks() - before) < 5:  # the stream, the frame, the plan, two calls
                await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == before

    asyncio.run(test())
