"""The gateway's copy of the records of access: what it asks, when it is fresh, and what cannot bring a key back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from corvo.endpoint import Operation, Query
from corvo.model.access_records import AccessNews, ApiKey, NamespaceRecord, RoleRecord
from corvo.model.errors import Refusal
from corvo.queries.access.follow_access import FollowAccess
from corvo.state.access import AccessTable
from corvo.wire import encode
from gateway.access import registry as module
from gateway.access.registry import GAP_S, REACH_S, STALE_S, Registry

pytestmark = pytest.mark.anyio


class Shard:
    """Shard 0's replica on this node, and the clock of the gateway."""

    def __init__(self) -> None:
        self.table = AccessTable(lambda key, value: None, lambda key, value: None)
        self.is_current = True
        self.refusal: Refusal | None = None
        self.asked: list[int] = []
        self.now = 100.0
        self.before_answer: Callable[[], Awaitable[None]] | None = None

    async def ask(self, ask: Operation | Query, timeout_s: float) -> Any:
        assert isinstance(ask, FollowAccess) and timeout_s > 0
        self.asked.append(ask.after)
        news = self.table.news(ask.after, self.is_current)
        if self.before_answer is not None:
            await self.before_answer()
        if self.refusal is not None:
            raise self.refusal
        return news

    def clock(self) -> float:
        return self.now


@pytest.fixture
def shard() -> Shard:
    return Shard()


@pytest.fixture
def registry(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> Registry:
    async def pass_time(seconds: float) -> None:
        shard.now += seconds

    monkeypatch.setattr(module.asyncio, "sleep", pass_time)
    return Registry(shard.ask, shard.clock)


def a_key(name: str = "k", **fields: Any) -> ApiKey:
    return ApiKey(name, name, "sk_", **fields)


async def test_it_holds_what_the_shard_holds(shard: Shard, registry: Registry) -> None:
    shard.table.put_key(a_key(role="auditor"))
    shard.table.put_role(RoleRecord("auditor", ()))
    shard.table.put_namespace(NamespaceRecord("acme", 7))
    await registry.refresh()

    key = registry.key("k")
    assert key is not None and registry.principal_of(key).roles == ("auditor",)
    assert (registry.version, registry.has_keys, registry.permissions_of(["auditor"])) == (3, True, ())
    assert registry.namespace("acme") == NamespaceRecord("acme", 7)
    assert registry.namespace("default") is not None and registry.namespace("other") is None

    shard.table.drop_key("k")
    await registry.refresh()
    assert (registry.key("k"), registry.has_keys, shard.asked) == (None, False, [0, 3])


async def test_only_an_enabled_key_counts(shard: Shard, registry: Registry) -> None:
    shard.table.put_key(a_key(is_enabled=False))
    await registry.refresh()

    assert not registry.has_keys


async def test_it_is_fresh_until_nobody_confirmed_it_for_too_long(shard: Shard, registry: Registry) -> None:
    assert not registry.is_fresh
    await registry.refresh()
    assert registry.is_fresh
    shard.now += STALE_S - 1
    shard.refusal = Refusal("SHARD_UNAVAILABLE", "it is down")
    await registry.refresh()
    assert registry.is_fresh
    shard.now += 1
    assert not registry.is_fresh


async def test_a_replica_that_is_cut_off_confirms_nothing_but_its_news_count(shard: Shard, registry: Registry) -> None:
    shard.is_current = False
    shard.table.put_key(a_key())
    await registry.refresh()

    assert not registry.is_fresh and registry.has_keys


async def test_the_age_counts_from_the_question(shard: Shard, registry: Registry) -> None:
    async def answer_late() -> None:
        shard.now += STALE_S

    shard.before_answer = answer_late
    await registry.refresh()

    assert not registry.is_fresh


async def test_an_older_state_brings_no_key_back(shard: Shard, registry: Registry) -> None:
    """A replica that was killed repeats its log: for a moment it is where it was before the revocation."""
    older = AccessTable(lambda key, value: None, lambda key, value: None)
    for table in (shard.table, older):
        table.put_key(a_key())
    shard.table.drop_key("k")
    await registry.refresh()
    shard.table = older
    await registry.refresh()

    assert (registry.key("k"), registry.version) == (None, 2)


async def test_an_older_state_counts_when_it_lasts(shard: Shard, registry: Registry) -> None:
    """A cluster that was restored from a backup: the gateway must not refuse everybody for ever."""
    for _ in range(3):
        shard.table.put_role(RoleRecord("auditor", ()))
    await registry.refresh()
    shard.table = AccessTable(lambda key, value: None, lambda key, value: None)
    shard.now += STALE_S
    await registry.refresh()

    assert (registry.version, registry.is_fresh) == (0, True)


async def test_many_callers_share_one_question(shard: Shard, registry: Registry) -> None:
    await asyncio.gather(*(registry.refresh() for _ in range(100)))

    assert len(shard.asked) == 1


async def test_an_answer_that_is_under_way_does_not_serve_a_later_caller(shard: Shard, registry: Registry) -> None:
    """It may have been given before the change that the caller knows of."""
    later: list[asyncio.Task[None]] = []

    async def change_meanwhile() -> None:
        if not later:
            shard.table.put_key(a_key())
            later.append(asyncio.ensure_future(registry.refresh()))

    shard.before_answer = change_meanwhile
    await registry.refresh()
    await later[0]

    assert registry.key("k") is not None and len(shard.asked) == 2


async def test_questions_have_a_gap_between_them(shard: Shard, registry: Registry) -> None:
    began = shard.now
    for _ in range(11):
        await registry.refresh()

    assert shard.now - began == pytest.approx(10 * GAP_S)


async def test_an_answer_waits_for_its_own_change(shard: Shard, registry: Registry) -> None:
    """The change is acknowledged by the leader; the replica here learns of it with the next message."""

    async def learn_at_the_third_question() -> None:
        if len(shard.asked) == 3:
            shard.table.put_key(a_key())

    shard.before_answer = learn_at_the_third_question
    await registry.reach(1)

    assert registry.key("k") is not None and len(shard.asked) == 4


async def test_an_answer_does_not_wait_for_ever(shard: Shard, registry: Registry) -> None:
    shard.refusal = Refusal("SHARD_UNAVAILABLE", "it is down")
    began = shard.now
    await registry.reach(1)

    assert REACH_S <= shard.now - began < REACH_S + 1


async def test_changes_are_told_and_a_fault_in_one_listener_does_not_hide_them(
    shard: Shard, registry: Registry
) -> None:
    told: list[int] = []

    def fail() -> None:
        raise ValueError("a fault of the test")

    registry.on_change(fail)
    registry.on_change(lambda: told.append(registry.version))
    await registry.refresh()
    shard.table.put_key(a_key())
    await registry.refresh()
    await registry.refresh()

    assert told == [1]


async def test_it_follows_until_it_is_stopped(shard: Shard) -> None:
    registry = Registry(shard.ask)
    registry.start()
    shard.table.put_key(a_key())
    async with asyncio.timeout(10):
        while registry.key("k") is None:
            await asyncio.sleep(0.01)
    await registry.stop()

    assert registry.is_fresh


def test_an_unchanged_answer_is_tiny() -> None:
    assert len(encode(AccessNews(12, True))) < 20
