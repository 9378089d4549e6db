"""A job that has moved to another shard is found under its old id, whatever is asked of it."""

import asyncio
from typing import Any

import pytest

from corvo.endpoint import Operation, Query
from corvo.model.errors import Moved, Refusal, Refused
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.move import Move
from gateway.shards import moved_jobs
from gateway.shards.client import ShardCall
from tests.gateway.api.test_stream import Talk, talking
from tests.gateway.asgi import House, a_scope
from tests.gateway.fake_shards import a_call
from tests.support.builders import ack, job_id

# One queue on each of four shards.
QUEUES = tuple(next(f"q{n}" for n in range(100) if shard_of_queue(f"q{n}", 4) == shard) for shard in range(4))


def moved(house: House, *queues: str, **fields: Any) -> str:
    """A job that was born in the first queue and went to each of the others in turn."""
    job = house.enqueue(queues[0], **fields)
    for queue in queues[1:]:
        assert house.post(f"/jobs/{job}/move", {"queue": queue}).json == {"status": "moved"}
    return job


def test_a_moved_job_is_read_fetched_beaten_and_acked_by_its_old_id() -> None:
    with House() as house:
        job = moved(house, *QUEUES[:3])
        assert house.get(f"/jobs/{job}").json["queue"] == QUEUES[2]
        assert house.fetch(QUEUES[2])["job_id"] == job
        beat = house.post("/heartbeat", {"jobs": {job: {"lease_token": 1, "progress": {"n": 1}}}})
        acked = house.post(f"/ack/{job}", {"lease_token": 1})
        shown = house.get(f"/jobs/{job}").json

    assert beat.json == {"jobs": {job: {"status": "ok"}}}
    assert (acked.status, acked.json) == (200, {"status": "ok"})
    assert (shown["state"], shown["progress"]) == ("completed", {"n": 1})


def test_a_moved_job_fails_by_its_old_id() -> None:
    with House() as house:
        job = moved(house, *QUEUES[:2])
        house.fetch(QUEUES[1])

        assert house.post(f"/fail/{job}", {"error": "boom"}).json["status"] == "retrying"


def test_every_action_follows() -> None:
    with House() as house:
        job = moved(house, *QUEUES[:2])
        actions = ["hold", "reject", "retry", "cancel", "retry"]
        statuses = [house.post(f"/jobs/{job}/{action}").json["status"] for action in actions]
        changed = house.post(f"/jobs/{job}/priority", {"priority": "high"})
        replayed = house.post(f"/jobs/{job}/replay", {"from": 1})
        shown = house.get(f"/jobs/{replayed.json['job_id']}").json
        back = house.post(f"/jobs/{job}/move", {"queue": QUEUES[0]})
        home = house.get(f"/jobs/{job}").json
        deleted = house.ask(a_scope("DELETE", f"/api/v1/jobs/{job}", []))
        gone = house.get(f"/jobs/{job}")

    assert statuses == ["held", "dead", "retried", "cancelled", "retried"]
    assert (changed.status, replayed.status, back.status) == (200, 201, 200)
    assert (shown["queue"], shown["parent_id"], shown["priority"]) == (QUEUES[1], job, 1)
    assert (home["queue"], home["priority"]) == (QUEUES[0], 1)
    assert deleted.json == {"status": "deleted"}
    assert (gone.status, gone.code) == (404, "JOB_NOT_FOUND")


def test_items_of_a_list_follow_each_for_itself_and_keep_their_order() -> None:
    with House() as house:
        here = house.enqueue(QUEUES[0])
        away = moved(house, QUEUES[0], QUEUES[1])
        far = moved(house, QUEUES[0], QUEUES[1], QUEUES[2])
        other = house.enqueue(QUEUES[3])
        for queue in QUEUES:
            house.fetch(queue)
        stranger = job_id(7)
        acks = [{"job_id": job, "result": n} for n, job in enumerate([far, stranger, here, away, other])]
        beats = house.post("/heartbeat", {"jobs": {job: {} for job in (far, here, away, other)}})
        reply = house.post("/ack/batch", {"acks": acks})
        results = [house.get(f"/jobs/{job}").json["result"] for job in (far, here, away, other)]

    assert [beat["status"] for beat in beats.json["jobs"].values()] == ["ok"] * 4
    assert reply.json["acked"] == 4
    assert [result.get("code", "ok") for result in reply.json["results"]] == ["ok", "JOB_NOT_FOUND", "ok", "ok", "ok"]
    assert results == [0, 2, 3, 4]


def test_a_job_on_its_way_is_waited_for() -> None:
    with House() as house:
        job = house.enqueue(QUEUES[0])
        house.shards.is_carrying = False
        house.post(f"/jobs/{job}/move", {"queue": QUEUES[1]})

        async def ask() -> list[Any]:
            asyncio.get_running_loop().call_later(0.12, house.shards.carry)
            calls: list[tuple[int, Operation | Query]] = [(0, Cancel(5, job))]
            return await moved_jobs.ask_all(house.shards, calls)  # type: ignore[arg-type]

        assert house.runner.run(ask()) == [False]


def test_a_job_that_does_not_arrive_is_unavailable_and_nothing_else_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_jobs, "WAITS_MAX", 1)
    with House() as house:
        job = house.enqueue(QUEUES[0])
        house.shards.is_carrying = False
        house.post(f"/jobs/{job}/move", {"queue": QUEUES[1]})

        async def ask(operation: Operation) -> Any:
            return await moved_jobs.ask_all(house.shards, [(0, operation)])  # type: ignore[arg-type]

        with pytest.raises(Refusal) as refused:
            house.runner.run(ask(Cancel(5, job)))
        [[item]] = house.runner.run(ask(ack(job)))

    assert (refused.value.code, refused.value.retry_after_ms) == ("SHARD_UNAVAILABLE", 1_000)
    assert (item.code, item.retry_after_ms) == ("SHARD_UNAVAILABLE", 1_000)


class Endless:
    """Shards that send everybody round and round."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, shard: int, ask: Operation) -> ShardCall:
        self.asked += 1
        return a_call(shard, ask, self._answer(shard, ask))

    async def _answer(self, shard: int, ask: Operation) -> Any:
        if isinstance(ask, Cancel):
            raise Refusal("JOB_MOVED", "elsewhere", moved=Moved((shard + 1) % 4))
        return [Refused("JOB_MOVED", "elsewhere", 0, Moved((shard + 1) % 4)) for _ in ask.items]  # type: ignore[attr-defined]


@pytest.mark.parametrize("operation", [Cancel(5, job_id(1)), ack(1, 2)])
def test_nobody_is_sent_round_for_ever(operation: Operation) -> None:
    shards = Endless()

    async def ask() -> Any:
        return await moved_jobs.ask_all(shards, [(0, operation)])  # type: ignore[arg-type]

    try:
        [items] = asyncio.run(ask())
        codes = {item.code for item in items}
    except Refusal as refusal:
        codes = {refusal.code}

    assert codes == {"SHARD_UNAVAILABLE"}
    assert shards.asked <= moved_jobs.HOPS_MAX + 3


class OneShard:
    """Shard 0 refuses in this way, shard 2 has the job."""

    def __init__(self, refused: Refused) -> None:
        self.refused = refused
        self.asked: list[int] = []

    def ask(self, shard: int, ask: Operation) -> ShardCall:
        self.asked.append(shard)
        return a_call(shard, ask, self._answer(shard, ask))

    async def _answer(self, shard: int, ask: Operation) -> Any:
        if isinstance(ask, Cancel):
            if shard == 0:
                raise self.refused.to_refusal()
            return False
        return [self.refused if shard == 0 else None for _ in ask.items]  # type: ignore[attr-defined]


@pytest.mark.parametrize("operation", [Cancel(5, job_id(1)), ack(1)])
def test_a_refusal_is_followed_for_what_it_says_not_for_how_long_it_asks_to_wait(operation: Operation) -> None:
    shards = OneShard(Refused("SHARD_UNAVAILABLE", "shard 0 restarts", 50))

    try:
        [[item]] = asyncio.run(moved_jobs.ask_all(shards, [(0, operation)]))  # type: ignore[arg-type]
    except Refusal as refusal:
        item = refusal.to_refused()

    assert item == shards.refused
    assert shards.asked == [0]


@pytest.mark.parametrize("operation", [Cancel(5, job_id(1)), ack(1)])
def test_a_shard_of_a_former_version_names_the_other_in_its_message(operation: Operation) -> None:
    shards = OneShard(Refused("JOB_MOVED", "2"))

    [result] = asyncio.run(moved_jobs.ask_all(shards, [(0, operation)]))  # type: ignore[arg-type]

    assert result in (False, [None])
    assert shards.asked[-1] == 2


def test_a_shard_that_is_away_costs_only_the_items_that_live_there() -> None:
    with House() as house:
        here = house.enqueue(QUEUES[0])
        away = moved(house, QUEUES[0], QUEUES[1])
        house.fetch(QUEUES[0])
        house.shards.refusing[1] = Refusal("SHARD_UNAVAILABLE", "shard 1 is not reachable", retry_after_ms=1_000)

        reply = house.post("/ack/batch", {"acks": [{"job_id": away}, {"job_id": here}]})

    assert [result.get("code", "ok") for result in reply.json["results"]] == ["SHARD_UNAVAILABLE", "ok"]


def test_the_stream_follows_too() -> None:
    async def test(talk: Talk) -> None:
        first = await talk.ask({"id": 1, "enqueue": [{"queue": QUEUES[0]}, {"queue": QUEUES[0]}]})
        one, two = (made["job_id"] for made in first["enqueued"])
        talk.shards.machines[0].apply(*[Move(9, job, QUEUES[1]) for job in (one, two)])
        talk.shards.carry()
        await talk.ask({"id": 2, "fetch": {"queues": [QUEUES[1]], "worker_id": "w1", "count": 2}})

        beaten = await talk.ask({"id": 3, "heartbeat": {one: {"lease_token": 1}, two: {"lease_token": 9}}})
        ended = await talk.ask({"id": 4, "ack": [{"job_id": one}], "fail": [{"job_id": two, "error": "boom"}]})

        assert beaten["heartbeat"] == {one: {"status": "ok"}, two: {"status": "lease_lost"}}
        assert ended["acked"] == [{"status": "ok"}]
        assert ended["failed"][0]["status"] == "retrying"

    talking(test)
