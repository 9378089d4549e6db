"""What namespaces with quotas have stored, as far as this gateway knows: it asks every shard once a second.

A shard counts what it holds itself (`corvo/rules/quotas.py`). From here it learns what the others hold. A shard that
does not answer counts with what it had.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from corvo.model.access_records import Quotas
from corvo.model.errors import Refusal
from corvo.model.quotas import Room, StoredAmounts
from corvo.queries.stored import GetStored
from gateway.access.registry import Registry

LOOK_S = 1.0
ANSWER_S = 2.0

AskAnyShard = Callable[[int, GetStored, float], Awaitable[Any]]
log = structlog.get_logger()


class QuotaWatch:
    def __init__(self, registry: Registry, ask: AskAnyShard, shard_count: int) -> None:
        self._registry = registry
        self._ask = ask
        self._shards = range(shard_count)
        self._quotas: dict[str, Quotas] = {}
        self._held: dict[str, list[StoredAmounts]] = {}  # by shard
        self._looking: asyncio.Task[None] | None = None
        registry.on_change(self._follow)

    def room(self, namespace: str, shard: int) -> Room | None:
        quotas = self._quotas.get(namespace)
        return None if quotas is None else self._room(namespace, quotas, shard)

    def everywhere(self, namespace: str) -> Room | None:
        return self.room(namespace, -1)

    def _room(self, namespace: str, quotas: Quotas, shard: int) -> Room:
        others = StoredAmounts()
        for number, held in enumerate(self._held[namespace]):
            if number != shard:
                others = others.plus(held)
        return Room(quotas, others.jobs, others.payload_bytes, others.queues)

    def start(self) -> None:
        self._looking = asyncio.ensure_future(self._look_for_ever())

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def look(self) -> None:
        namespaces = list(self._quotas)
        if namespaces:
            await asyncio.gather(*(self._look_at(shard, namespaces) for shard in self._shards))

    async def _look_at(self, shard: int, namespaces: list[str]) -> None:
        try:
            found: list[StoredAmounts] = await self._ask(shard, GetStored(namespaces), ANSWER_S)
        except Refusal as refusal:
            log.info("a shard did not say what namespaces have stored", shard=shard, reason=refusal.message)
            return
        for namespace, held in zip(namespaces, found, strict=True):
            if namespace in self._held:  # its quotas may have been removed meanwhile
                self._held[namespace][shard] = held

    async def _look_for_ever(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    def _follow(self) -> None:
        """The records have changed."""
        known = self._registry.state.namespaces.values()
        self._quotas = {one.name: one.quotas for one in known if one.quotas is not None}
        self._held = {name: self._held.get(name, [StoredAmounts() for _ in self._shards]) for name in self._quotas}
