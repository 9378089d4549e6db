"""What other shards hold is asked once a second, for namespaces with quotas only."""

from typing import Any

import pytest

from corvo.model.access_records import AccessNews, NamespaceRecord, Quotas
from corvo.model.errors import Refusal
from corvo.model.quotas import Room, StoredAmounts
from corvo.queries.stored import GetStored
from gateway.access.quotas import QuotaWatch
from gateway.access.registry import Registry

pytestmark = pytest.mark.anyio
TEN = Quotas(jobs_max=10)


class Shards:
    def __init__(self) -> None:
        self.held = [StoredAmounts(1, 10, 1), StoredAmounts(2, 20, 1), StoredAmounts(4, 40, 2)]
        self.silent: set[int] = set()
        self.asked: list[list[str]] = []

    async def ask(self, shard: int, ask: GetStored, timeout_s: float) -> Any:
        self.asked.append(ask.namespaces)
        if shard in self.silent:
            raise Refusal("NOT_LEADER", "an election")
        return [self.held[shard] for _ in ask.namespaces]


def a_watch(shards: Shards) -> tuple[QuotaWatch, Registry]:
    async def nobody(ask: Any, timeout_s: float) -> Any:
        raise AssertionError("the registry is told by the test")

    registry = Registry(nobody)
    return QuotaWatch(registry, shards.ask, len(shards.held)), registry


def tell(registry: Registry, version: int, *records: NamespaceRecord, gone: tuple[str, ...] = ()) -> None:
    registry._take(AccessNews(version, True, namespaces=list(records), gone_namespaces=list(gone)), 0.0)


async def test_a_shard_is_told_what_the_others_hold() -> None:
    shards = Shards()
    watch, registry = a_watch(shards)
    await watch.look()
    assert (shards.asked, watch.room("acme", 0)) == ([], None)

    tell(registry, 1, NamespaceRecord("acme", quotas=TEN), NamespaceRecord("free"))
    assert watch.room("acme", 0) == Room(TEN)
    await watch.look()

    assert shards.asked == [["acme"]] * 3
    assert watch.room("acme", 0) == Room(TEN, 6, 60, 3)
    assert watch.room("acme", 2) == Room(TEN, 3, 30, 2)
    assert watch.everywhere("acme") == Room(TEN, 7, 70, 4)
    assert watch.room("free", 0) is None


async def test_a_silent_shard_counts_with_what_it_had() -> None:
    shards = Shards()
    watch, registry = a_watch(shards)
    tell(registry, 1, NamespaceRecord("acme", quotas=TEN))
    await watch.look()
    shards.silent, shards.held = {2}, [StoredAmounts(3, 30, 1)] * 3

    await watch.look()

    assert watch.room("acme", 0) == Room(TEN, 3 + 4, 30 + 40, 1 + 2)


async def test_quotas_follow_the_records() -> None:
    watch, registry = a_watch(Shards())
    tell(registry, 1, NamespaceRecord("acme", quotas=TEN))
    await watch.look()

    tell(registry, 2, NamespaceRecord("acme", quotas=Quotas(queues_max=2)))
    assert watch.room("acme", 0) == Room(Quotas(queues_max=2), 6, 60, 3)
    tell(registry, 3, NamespaceRecord("acme"))
    assert watch.room("acme", 0) is None
