"""The use of keys is reported once, in pieces, and again after a failure."""

import asyncio
from typing import Any

import pytest

from corvo.endpoint import Operation, Query
from corvo.model.errors import Refusal
from corvo.model.limits import KEY_USES_MAX
from corvo.ops.access.touch_keys import TouchKeys
from gateway.access import key_uses as module
from gateway.access.key_uses import KeyUses

pytestmark = pytest.mark.anyio


class Shard:
    def __init__(self) -> None:
        self.reports: list[list[str]] = []
        self.refusal: Refusal | None = None
        self.asked = asyncio.Event()

    async def ask(self, ask: Operation | Query, timeout_s: float) -> Any:
        assert isinstance(ask, TouchKeys)
        self.asked.set()
        if self.refusal is not None:
            raise self.refusal
        self.reports.append(ask.key_hashes)
        return len(ask.key_hashes)


async def test_each_key_is_reported_once() -> None:
    shard = Shard()
    uses = KeyUses(shard.ask)
    for key_hash in ("b", "a", "b"):
        uses.note(key_hash)
    await uses.report()
    await uses.report()

    assert shard.reports == [["a", "b"]]


async def test_many_keys_are_reported_in_pieces() -> None:
    shard = Shard()
    uses = KeyUses(shard.ask)
    for number in range(KEY_USES_MAX + 1):
        uses.note(f"{number:05}")
    await uses.report()

    assert [len(report) for report in shard.reports] == [KEY_USES_MAX, 1]


async def test_a_report_that_fails_is_sent_with_the_next() -> None:
    shard = Shard()
    uses = KeyUses(shard.ask)
    shard.refusal = Refusal("NOT_LEADER", "an election")
    uses.note("a")
    await uses.report()
    shard.refusal = None
    uses.note("b")
    await uses.report()

    assert shard.reports == [["a", "b"]]


async def test_it_reports_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPORT_S", 0.01)
    shard = Shard()
    uses = KeyUses(shard.ask)
    uses.note("a")
    uses.start()
    async with asyncio.timeout(10):
        await shard.asked.wait()
    await uses.stop()

    assert shard.reports == [["a"]]
