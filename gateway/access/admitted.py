"""Admissions: what the guard decided about a credential, and for how long that holds.

Many requests share one. A request that waits, a stream and an event stream watch it, and end when it does.
"""

import asyncio
from collections.abc import Callable

from corvo.endpoint import PlanContext
from corvo.model.access import Principal

CLOCK_S = 30.0  # how often a wait for a far expiry looks at the clock again, which may be set meanwhile


class Admitted:
    __slots__ = ("__weakref__", "_clock_ns", "_ended", "context", "principal")

    def __init__(self, principal: Principal, context: PlanContext, clock_ns: Callable[[], int]) -> None:
        self.principal = principal
        self.context = context
        self._clock_ns = clock_ns
        self._ended = asyncio.Event()

    @property
    def is_over(self) -> bool:
        expires_at = self.principal.expires_at
        return self._ended.is_set() or (expires_at != 0 and self._clock_ns() >= expires_at)

    def end(self) -> None:
        """The credential was revoked, or gives other permissions now."""
        self._ended.set()

    async def over(self) -> None:
        """Return when it is over."""
        expires_at = self.principal.expires_at
        if not expires_at:
            await self._ended.wait()
        while not self.is_over:
            left_s = (expires_at - self._clock_ns()) / 1e9
            try:
                async with asyncio.timeout(min(left_s, CLOCK_S)):
                    await self._ended.wait()
            except TimeoutError:
                continue
