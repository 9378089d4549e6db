"""`GET /bulk/{id}/progress`: the progress of an operation as server-sent events, on any node, for many listeners.

The gateway reads the record on shard 0 twice a second, once for all its listeners. It buffers nothing for a client that
does not read. The stream ends with the operation.
"""

import asyncio
from time import monotonic

from corvo.endpoint import Answer
from corvo.model.errors import Refusal
from corvo.queries.bulk import GetBulk, progress_of
from corvo.rules.bulk import BULK_SHARD, OPEN, STATUS_NAMES, Bulk
from gateway.api.events import CONNECTIONS_MAX, KEEPALIVE_S, RETRY_MS, WRITE_S, first_of
from gateway.http.messages import Disconnected, Request, Streaming, Write, to_json
from gateway.shards.client import Shards

LOOK_EVERY_S = 0.5


class ProgressStream:
    def __init__(self, shards: Shards, draining: asyncio.Event, look_every_s: float = LOOK_EVERY_S) -> None:
        self._shards = shards
        self._draining = draining
        self._look_every_s = look_every_s
        self._looks: dict[str, tuple[float, asyncio.Future[Bulk]]] = {}
        self.listeners = 0

    async def stream(self, body: None, request: Request) -> Answer:
        [bulk_id] = request.parameters
        request.context.check_bulk_id(bulk_id)
        if self.listeners >= CONNECTIONS_MAX:
            raise Refusal("OVERLOADED", f"{CONNECTIONS_MAX} connections are listening already", retry_after_ms=RETRY_MS)
        first = await self._look(bulk_id)

        async def run(write: Write) -> None:
            self.listeners += 1
            try:
                await first_of(self._tell(first, write), request.hung_up(), self._draining.wait())
            finally:
                self.listeners -= 1
                if not self.listeners:
                    self._looks.clear()

        return Answer(200, Streaming(b"text/event-stream", run))

    async def _look(self, bulk_id: str) -> Bulk:
        """A recent record, from one query for all listeners."""
        at, look = self._looks.get(bulk_id, (0.0, None))
        if look is None or monotonic() - at >= self._look_every_s / 2:
            look = self._shards.ask(BULK_SHARD, GetBulk(bulk_id)).future
            self._looks[bulk_id] = (monotonic(), look)
        try:
            return await asyncio.shield(look)
        except Refusal:
            self._looks.pop(bulk_id, None)  # the next listener asks again
            raise

    async def _tell(self, bulk: Bulk, write: Write) -> None:
        await _write(write, b"retry: %d\n\n" % RETRY_MS + _frame(bulk, "started"))
        told_at = monotonic()
        while bulk.status in OPEN:
            await asyncio.sleep(self._look_every_s)
            try:
                known = await self._look(bulk.id)
            except Refusal as refusal:
                if refusal.code == "BULK_NOT_FOUND":
                    return
                known = bulk
            if known.step != bulk.step or known.status is not bulk.status:
                if known.status in OPEN:
                    await _write(write, _frame(known, "progress"))
                    told_at = monotonic()
            elif monotonic() - told_at >= KEEPALIVE_S:
                await _write(write, b":keepalive\n\n")
                told_at = monotonic()
            bulk = known
        await _write(write, _frame(bulk, STATUS_NAMES[bulk.status]))


def _frame(bulk: Bulk, kind: str) -> bytes:
    told = progress_of(bulk, kind)
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (bulk.step, told.type.encode(), to_json(told))


async def _write(write: Write, piece: bytes) -> None:
    try:
        async with asyncio.timeout(WRITE_S):
            await write(piece)
    except TimeoutError:
        raise Disconnected from None
