"""A plan is carried out round after round; a round of courtesy never spoils what has been done."""

import asyncio
from typing import Any

import pytest

from corvo.endpoint import Answer, Plan, Query
from corvo.model.errors import Refusal
from corvo.queries.cluster import GetIndex
from gateway.http.messages import Disconnected
from gateway.shards import plan_executor
from gateway.shards.client import ShardCall
from gateway.shards.plan_executor import carry_out
from tests.gateway.fake_shards import a_call

CALL = (0, GetIndex())
DONE = Answer(200, "done")
INSTEAD = Answer(200, "instead")


class Shards:
    """Answers each round with its number, or does as `then` says."""

    def __init__(self, then: Any = None) -> None:
        self.count = 0
        self._then = then

    def ask(self, shard: int, ask: Query) -> ShardCall:
        self.count += 1
        return a_call(shard, ask, self._answer())

    async def _answer(self) -> int:
        if isinstance(self._then, Exception):
            raise self._then
        if self._then is not None:
            await asyncio.sleep(self._then)
        return self.count


def run(shards: Shards, plan: Plan) -> Answer:
    return asyncio.run(carry_out(shards, plan))  # type: ignore[arg-type]  # stands in for Shards


def test_a_plan_may_lead_to_another() -> None:
    shards = Shards()
    seen: list[int] = []

    def conclude(results: list[Any]) -> Answer | Plan:
        seen.extend(results)
        return DONE if results == [3] else Plan([CALL], conclude, wait_s=0.001)

    assert run(shards, Plan([CALL], conclude)) == DONE
    assert seen == [1, 2, 3]


def test_a_refusal_ends_it() -> None:
    with pytest.raises(Refusal):
        run(Shards(Refusal("OVERLOADED", "too much")), Plan([CALL], lambda results: DONE))


@pytest.mark.parametrize("then", [Refusal("OVERLOADED", "too much"), 60], ids=["refused", "slow"])
def test_a_round_of_courtesy_that_fails_gives_the_answer_that_is_known(
    then: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_executor, "COURTESY_S", 0.02)

    assert run(Shards(then), Plan([CALL], lambda results: DONE, instead=INSTEAD)) == INSTEAD


def test_rounds_of_courtesy_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_executor, "COURTESY_S", 0.05)

    def conclude(results: list[Any]) -> Plan:
        return Plan([CALL], conclude, 0.01, INSTEAD)

    shards = Shards()
    assert run(shards, Plan([CALL], conclude, 0.0, INSTEAD)) == INSTEAD
    assert 1 < shards.count < 8


def endless(results: list[Any]) -> Plan:
    return Plan([CALL], endless)


def test_a_plan_that_does_not_end_is_given_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_executor, "ROUNDS_S", 0.05)

    with pytest.raises(Refusal) as refusal:
        run(Shards(0.001), Plan([CALL], endless))

    assert refusal.value.code == "DEADLINE_EXCEEDED"


def test_a_long_plan_stops_when_nobody_waits_for_it_any_more() -> None:
    shards = Shards(0.001)

    async def test() -> None:
        gone = asyncio.Event()
        work = asyncio.ensure_future(carry_out(shards, Plan([CALL], endless), gone.wait))  # type: ignore[arg-type]
        while shards.count < 3:
            await asyncio.sleep(0.001)
        gone.set()
        with pytest.raises(Disconnected):
            await work
        assert len(asyncio.all_tasks()) == 1, "nobody listens for the client any more"

    asyncio.run(test())


def test_a_plan_of_one_round_does_not_even_ask_whether_somebody_waits() -> None:
    async def test() -> Answer:
        return await carry_out(Shards(), Plan([CALL], lambda _: DONE), lambda: pytest.fail("asked"))  # type: ignore[arg-type]

    assert asyncio.run(test()) == DONE
