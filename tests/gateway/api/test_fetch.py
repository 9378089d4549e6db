"""Fetch: one shard or many, waiting without claiming twice."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from corvo.model.errors import Refusal
from corvo.model.lifecycle import State
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.queries.job import Await
from gateway.api import fetch as fetch_module
from gateway.api.fetch import Fetcher
from tests.gateway.asgi import Draining
from tests.gateway.fake_peer import run, until
from tests.gateway.fake_shards import FakeShards
from tests.support.builders import enqueue, fetch, job_id

# Two queues on each of three shards, named after it.
A, A2, B, B2, C, C2 = (
    name for shard in range(3) for name in [f"q{n}" for n in range(100) if shard_of_queue(f"q{n}", 3) == shard][:2]
)


class Scene:
    def __init__(self) -> None:
        self.shards = FakeShards(3)
        self.draining = Draining()
        self.gone = asyncio.Event()
        self._fetching = Fetcher(self.shards, self.draining)  # type: ignore[arg-type]
        self.draining.fetchings.append(self._fetching)

    def fetch(self, *queues: str, wait_ms: int = 0, **fields: Any) -> Coroutine[Any, Any, list[Claimed]]:
        return self._fetching.fetch(fetch(*queues, wait_ms=wait_ms, **fields), self._hung_up)

    async def _hung_up(self) -> None:
        await self.gone.wait()

    def held_by(self, *queues: str, **fields: Any) -> Coroutine[Any, Any, list[Claimed]]:
        return self._fetching.held_by(fetch(*queues, **fields))

    def enqueue(self, *jobs: int, queue: str) -> None:
        self.shards.ask(shard_of_queue(queue, 3), enqueue(*jobs, queue=queue))
        self.shards.asked.pop()

    def fetches(self) -> list[tuple[int, list[str], int]]:
        """Shard, queues and count of every fetch that was asked."""
        return [(shard, ask.queues, ask.count) for shard, ask in self.shards.asked if isinstance(ask, Fetch)]

    def awaits(self) -> list[tuple[int, list[str]]]:
        return [(shard, ask.queues) for shard, ask in self.shards.asked if isinstance(ask, Await)]

    async def waiting(self, count: int) -> None:
        await until(lambda: len(self.shards.parked) == count)


def ids(claimed: list[Claimed]) -> list[str]:
    return [one.job_id for one in claimed]


# One shard


def test_queues_of_one_shard_are_one_fetch_that_waits_there() -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(A, A2, wait_ms=60_000))
        await scene.waiting(1)
        scene.enqueue(1, queue=A2)

        assert ids(await fetched) == [job_id(1)]
        assert scene.fetches() == [(0, [A, A2], 1)]
        assert scene.awaits() == []

    run(test())


def test_what_is_there_is_fetched_without_waiting() -> None:
    async def test() -> None:
        scene = Scene()
        scene.enqueue(1, 2, 3, queue=A)

        assert ids(await scene.fetch(A, count=2, wait_ms=60_000)) == [job_id(1), job_id(2)]
        assert await scene.fetch(B) == []

    run(test())


def test_patience_ends_empty() -> None:
    async def test() -> None:
        scene = Scene()

        assert await scene.fetch(A, wait_ms=80) == []
        assert await scene.fetch(A, B, C, wait_ms=20) == []
        assert scene.shards.parked == {}
        assert scene.shards.recalled == []

    run(test())


@pytest.mark.parametrize("ender", ["gone", "draining"])
def test_a_wait_on_one_shard_is_recalled_when_it_ends_early(ender: str) -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(A, wait_ms=60_000))
        await scene.waiting(1)
        await asyncio.sleep(fetch_module.GRACE_S * 1.2)
        getattr(scene, ender).set()

        assert await fetched == []
        assert len(scene.shards.recalled) == 1
        scene.enqueue(1, queue=A)
        assert scene.shards.machines[0].job(1).state == State.PENDING, "nobody claims for a client that is gone"

    run(test())


def test_a_claim_that_crosses_the_recall_is_handed_out() -> None:
    async def test() -> None:
        scene = Scene()
        scene.shards.recall = lambda call: scene.enqueue(1, queue=A)  # type: ignore[method-assign]
        fetched = asyncio.create_task(scene.fetch(A, wait_ms=60_000))
        await scene.waiting(1)
        scene.draining.set()

        assert ids(await fetched) == [job_id(1)]

    run(test())


def test_a_refusal_of_the_shard_is_passed_on() -> None:
    async def test() -> None:
        scene = Scene()
        scene.shards.refusing[0] = Refusal("SHARD_UNAVAILABLE", "gone")

        for queues, wait_ms in [((A,), 60_000), ((A, B), 0)]:
            with pytest.raises(Refusal, match="gone"):
                await scene.fetch(*queues, wait_ms=wait_ms)
        scene.shards.refusing[shard_of_queue(B, 3)] = Refusal("SHARD_UNAVAILABLE", "gone")
        with pytest.raises(Refusal, match="gone"):
            await scene.fetch(A, B, wait_ms=60_000)

    run(test())


# Several shards


def test_shards_are_asked_in_the_order_in_which_the_caller_named_the_queues() -> None:
    async def test() -> None:
        scene = Scene()
        scene.enqueue(1, queue=A)
        scene.enqueue(2, queue=A2)
        scene.enqueue(3, queue=B)

        assert ids(await scene.fetch(C, A2, B, A)) == [job_id(2)]
        assert scene.fetches() == [(2, [C], 1), (0, [A2], 1)], "and no further than needed"

    run(test())


def test_a_shard_that_gives_a_job_learns_all_queues_of_the_worker() -> None:
    async def test() -> None:
        scene = Scene()
        scene.enqueue(1, queue=A)

        await scene.fetch(A, B, C)

        worker = scene.shards.machines[0].tables.find_worker("w1")
        assert worker is not None
        assert worker.queues == [A, B, C]

    run(test())


def test_a_batch_is_filled_shard_by_shard_and_never_beyond_its_count() -> None:
    async def test() -> None:
        scene = Scene()
        scene.enqueue(1, 2, queue=A)
        scene.enqueue(3, 4, 5, queue=B)
        scene.enqueue(6, queue=C)

        assert ids(await scene.fetch(A, B, C, count=4)) == [job_id(number) for number in (1, 2, 3, 4)]
        assert scene.fetches() == [(0, [A], 4), (1, [B], 2)]
        assert ids(await scene.fetch(A, B, C, count=4)) == [job_id(5), job_id(6)]

    run(test())


def test_neighbours_on_one_shard_are_asked_together_and_order_is_kept_otherwise() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.fetch(A, A2, B, A, C, C2)

        assert [(shard, queues) for shard, queues, _ in scene.fetches()] == [
            (0, [A, A2]),
            (1, [B]),
            (0, [A]),
            (2, [C, C2]),
        ]

    run(test())


def test_each_turn_of_a_shard_has_a_claim_of_its_own_and_the_same_each_time() -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(A, B, A, wait_ms=60_000, claim=100))
        await scene.waiting(2)
        scene.enqueue(1, queue=B)
        await fetched
        claims = [(shard, ask.claim_id) for shard, ask in scene.shards.asked if isinstance(ask, Fetch)]

        assert claims == [(0, 100), (1, 100), (0, 101), (1, 100)]
        assert all(ask.wait_ms == 0 for _, ask in scene.shards.asked if isinstance(ask, Fetch))

    run(test())


def test_jobs_of_a_lost_answer_are_found_on_all_shards_and_nothing_else_is_claimed() -> None:
    async def test() -> None:
        scene = Scene()
        for number, queue in enumerate((A, B, C), 1):
            scene.enqueue(number, queue=queue)
        lost = await scene.fetch(A, B, A2, claim=100, count=9)

        again = await scene.held_by(A, B, A2, claim=100, count=9)

        assert ids(again) == ids(lost) == [job_id(1), job_id(2)]
        assert await scene.held_by(A, C, claim=777) == []

    run(test())


def test_when_none_has_a_job_all_are_awaited_and_the_first_to_call_is_asked_again() -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(A, B, A2, wait_ms=60_000))
        await scene.waiting(2)
        scene.enqueue(1, queue=B)

        assert ids(await fetched) == [job_id(1)]
        assert scene.awaits() == [(0, [A, A2]), (1, [B])], "one await a shard"
        assert len(scene.shards.recalled) == 1, "the other is taken back"
        assert scene.shards.parked == {}

    run(test())


def test_waiting_on_many_claims_nothing_twice() -> None:
    async def test() -> None:
        scene = Scene()
        fetches = [asyncio.create_task(scene.fetch(A, B, C, wait_ms=60_000, claim=n * 100)) for n in range(1, 6)]
        await scene.waiting(15)
        scene.enqueue(1, queue=A)
        scene.enqueue(2, queue=B)
        scene.enqueue(3, queue=C)
        await until(lambda: sum(task.done() for task in fetches) == 3)
        still = [task for task in fetches if not task.done()]
        claimed = [job for task in fetches if task.done() for job in ids(await task)]

        assert sorted(claimed) == [job_id(1), job_id(2), job_id(3)]
        assert [machine.job(n).attempt for n, machine in enumerate(scene.shards.machines, 1)] == [1, 1, 1]
        await scene.waiting(6)
        scene.draining.set()
        assert [await task for task in still] == [[], []]

    run(test())


def test_who_was_called_and_came_too_late_waits_on() -> None:
    async def test() -> None:
        scene = Scene()
        slow = asyncio.create_task(scene.fetch(A, B, wait_ms=60_000))
        await scene.waiting(2)
        scene.enqueue(1, queue=A)  # called...
        assert ids(await scene.fetch(A)) == [job_id(1)]  # ...and somebody else was quicker
        await until(lambda: len(scene.awaits()) == 4)
        await scene.waiting(2)
        scene.enqueue(2, queue=B)

        assert ids(await slow) == [job_id(2)]

    run(test())


@pytest.mark.parametrize("ender", ["gone", "draining"])
def test_waits_on_many_are_recalled_when_they_end_early(ender: str) -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(A, B, C, wait_ms=60_000))
        await scene.waiting(3)
        getattr(scene, ender).set()

        assert await fetched == []
        assert len(scene.shards.recalled) == 3
        assert scene.shards.parked == {}

    run(test())


def test_while_draining_nobody_waits() -> None:
    async def test() -> None:
        scene = Scene()
        scene.draining.set()
        scene.enqueue(1, queue=A)

        assert ids(await scene.fetch(A, wait_ms=60_000)) == [job_id(1)]
        assert await scene.fetch(A, wait_ms=60_000) == []
        assert await scene.fetch(A, B, wait_ms=60_000) == []

    run(test())


def test_what_one_shard_gave_is_not_lost_because_another_is_gone() -> None:
    async def test() -> None:
        scene = Scene()
        scene.enqueue(1, 2, queue=A)
        scene.shards.refusing[1] = Refusal("SHARD_UNAVAILABLE", "gone")

        assert ids(await scene.fetch(A, B, count=5)) == [job_id(1), job_id(2)]

    run(test())


def test_a_shard_that_is_away_does_not_keep_the_jobs_of_the_others_from_a_worker() -> None:
    async def test() -> None:
        scene = Scene()
        scene.shards.refusing[shard_of_queue(A, 3)] = Refusal("SHARD_UNAVAILABLE", "gone")
        scene.enqueue(1, queue=B)
        assert ids(await scene.fetch(A, B, wait_ms=60_000)) == [job_id(1)]

        fetched = asyncio.create_task(scene.fetch(A, B, wait_ms=60_000))
        await scene.waiting(1)
        scene.enqueue(2, queue=B)
        assert ids(await fetched) == [job_id(2)]

    run(test())


def test_a_shard_that_goes_while_it_is_awaited_leaves_the_others_to_wait_on() -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(A, B, wait_ms=60_000))
        await scene.waiting(2)
        call = next(call for call in scene.shards.parked.values() if call.shard == shard_of_queue(A, 3))
        call.end(Refusal("SHARD_UNAVAILABLE", "gone"))
        await asyncio.sleep(0)

        scene.enqueue(1, queue=B)

        assert ids(await fetched) == [job_id(1)]

    run(test())


def test_a_shard_that_is_too_full_to_be_awaited_leaves_the_others_to_wait_on() -> None:
    async def test() -> None:
        scene = Scene()
        ask_shard = scene.shards.ask

        def ask_or_refuse(shard: int, ask: Any, wait_ms: int = 0) -> Any:
            call = ask_shard(shard, ask, wait_ms)
            if shard == shard_of_queue(A, 3) and isinstance(ask, Await):
                call.end(Refusal("OVERLOADED", "full"))
            return call

        scene.shards.ask = ask_or_refuse  # type: ignore[assignment]
        fetched = asyncio.create_task(scene.fetch(A, B, wait_ms=60_000))
        await until(lambda: any(call.ask.queues == [B] for call in scene.shards.parked.values()))  # type: ignore[union-attr]
        scene.enqueue(1, queue=B)

        assert ids(await fetched) == [job_id(1)]

    run(test())


def test_of_two_that_call_at_once_one_may_be_gone() -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(A, B, wait_ms=60_000))
        await scene.waiting(2)
        for call in scene.shards.parked.values():
            call.end(True if call.shard == 0 else Refusal("SHARD_UNAVAILABLE", "gone"))
        outcome = await asyncio.gather(asyncio.wait_for(fetched, 0.05), return_exceptions=True)

        assert isinstance(outcome[0], Refusal | TimeoutError)

    run(test())


@pytest.mark.parametrize("queues", [(A,), (A, B)])
def test_an_abandoned_fetch_leaves_nothing_behind(queues: tuple[str, ...]) -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(*queues, wait_ms=60_000))
        await scene.waiting(len(queues))
        fetched.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetched

        assert scene.shards.parked == {}
        assert len(asyncio.all_tasks()) == 1

    run(test())


# By weight


def test_weighted_queues_of_several_shards_get_their_shares() -> None:
    async def test() -> None:
        scene = Scene()
        for place, queue in enumerate((A, B, C)):
            scene.enqueue(*range(place * 500 + 1, place * 500 + 501), queue=queue)
        found: Counter[str] = Counter()
        for number in range(400):
            [claim] = await scene.fetch(A, B, C, claim=(number + 1) << 20, weights=[6, 2, 2])
            found[claim.queue] += 1

        assert 200 < found[A] < 280
        assert 50 < found[B] < 110

    run(test())


def test_an_empty_queue_of_great_weight_gives_its_turns_to_all_alike() -> None:
    """A, which is empty, is on the shard of A2: that gains A2 nothing over B."""

    async def test() -> None:
        scene = Scene()
        scene.enqueue(*range(1, 301), queue=A2)
        scene.enqueue(*range(301, 601), queue=B)
        found: Counter[str] = Counter()
        for number in range(300):
            [claim] = await scene.fetch(A, A2, B, claim=(number + 1) << 20, weights=[98, 1, 1])
            found[claim.queue] += 1

        assert 115 < found[A2] < 185

    run(test())


def test_a_weighted_fetch_that_waits_gets_the_job_that_comes() -> None:
    async def test() -> None:
        scene = Scene()
        fetched = asyncio.create_task(scene.fetch(A, B, A2, wait_ms=60_000, weights=[1, 2, 3]))
        await scene.waiting(2)
        scene.enqueue(1, queue=A2)

        assert ids(await fetched) == [job_id(1)]
        assert all(not ask.weights for _, ask in scene.shards.asked if isinstance(ask, Fetch))

    run(test())


def test_a_weighted_fetch_on_one_shard_is_left_to_that_shard() -> None:
    async def test() -> None:
        scene = Scene()
        scene.enqueue(1, queue=A2)

        assert ids(await scene.fetch(A, A2, weights=[5, 1])) == [job_id(1)]
        assert [ask.weights for _, ask in scene.shards.asked if isinstance(ask, Fetch)] == [[5, 1]]

    run(test())
