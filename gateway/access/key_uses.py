"""When keys were last used: collected here, and reported to shard 0 once a minute in one small operation.

It is for people who look for keys that nobody needs any more. A report that fails is sent with the next one, and one
that is lost with its gateway is not missed.
"""

import asyncio

import structlog

from corvo.model.errors import Refusal
from corvo.model.limits import KEY_USE_MS, KEY_USES_MAX
from corvo.ops.access.touch_keys import TouchKeys
from gateway.access.registry import AskShard

REPORT_S = KEY_USE_MS / 1000
ANSWER_S = 10.0

log = structlog.get_logger()


class KeyUses:
    def __init__(self, ask: AskShard) -> None:
        self._ask = ask
        self._used: set[str] = set()  # hashes of keys that exist: never more than there are keys
        self._reporting: asyncio.Task[None] | None = None

    def note(self, key_hash: str) -> None:
        """A request with this key was admitted."""
        self._used.add(key_hash)

    def start(self) -> None:
        self._reporting = asyncio.ensure_future(self._report_for_ever())

    async def stop(self) -> None:
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.gather(self._reporting, return_exceptions=True)

    async def report(self) -> None:
        used, self._used = sorted(self._used), set()
        for first in range(0, len(used), KEY_USES_MAX):
            try:
                await self._ask(TouchKeys(used[first : first + KEY_USES_MAX]), ANSWER_S)
            except Refusal as refusal:
                log.info("the use of keys could not be reported", reason=refusal.message)
                self._used.update(used[first:])
                return

    async def _report_for_ever(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            await self.report()
