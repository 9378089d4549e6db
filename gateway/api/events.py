"""`GET /api/v1/events`: the events of all shards, as server-sent events or in pages.

Each connection queries every shard of this node for events after its cursor and sends them. It queries a shard again
only after it has sent the last answer, so it holds at most one answer per shard. A client that does not read within
`WRITE_S` is disconnected. It reconnects with its cursor and resumes there.

Stored events are sent in time order over all shards, new ones as they arrive.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any
from weakref import WeakSet

import structlog

from corvo.endpoint import Answer
from corvo.model.errors import Refusal
from corvo.model.reach import Reach
from corvo.queries.events import (
    NOW,
    START,
    EventsFound,
    EventsPage,
    EventsPageQuery,
    EventsQuery,
    EventView,
    Filters,
    Gap,
    GetEvents,
    event_view,
    format_cursor,
    merge_pages,
    parse_cursor,
    parse_filters,
)
from gateway.access.redaction import Curtain
from gateway.http.messages import Disconnected, Request, Streaming, Write, to_json
from gateway.shards.client import Shards
from gateway.shards.moved_jobs import ask_all

CONNECTIONS_MAX = 1_000
EVENTS_HELD = 256  # per connection, over all shards: about 100 kB, even if its client does not read
EVENTS_AT_ONCE_MIN = 4  # per shard
KEEPALIVE_S = 15.0
WAIT_MS = 20_000  # how long a query waits at a shard without events
WRITE_S = 30.0
ASK_AGAIN_S = 1.0  # after a shard refused
RETRY_MS = 1_000  # the reconnect delay sent to clients

log = structlog.get_logger()


class EventListener:
    """The state that all event connections share."""

    def __init__(self, shards: Shards, draining: asyncio.Event, curtain: Curtain | None = None) -> None:
        self.curtain = curtain or Curtain()
        self.shards = shards
        self.draining = draining
        self.open: WeakSet[ClientConnection] = WeakSet()

    async def page(self, wanted: EventsPageQuery, reach: Reach) -> Answer:
        filters = parse_filters(reach, wanted.queues, wanted.job_ids, wanted.types)
        cursor = parse_cursor("after_seq", wanted.after_seq, len(self.shards))
        found = await self.ask(cursor, wanted.limit, filters)
        events, behind = merge_pages(cursor, found, wanted.limit, reach)
        has_more = len(events) < sum(len(one.events) for one in found) or any(one.has_more for one in found)
        return Answer(200, EventsPage(events, format_cursor(behind), has_more, sum(one.missed for one in found)))

    async def stream(self, wanted: EventsQuery, request: Request) -> Answer:
        filters = parse_filters(request.context.reach, wanted.queues, wanted.job_ids, wanted.types)
        cursor = self._begin(request, wanted)
        if len(self.open) >= CONNECTIONS_MAX:
            raise Refusal("OVERLOADED", f"{CONNECTIONS_MAX} connections are listening already", retry_after_ms=RETRY_MS)
        connection = ClientConnection(self, request, cursor, filters)
        self.open.add(connection)
        await connection.catch_up()  # an unreachable shard must give an error, not an empty stream
        return Answer(200, Streaming(b"text/event-stream", connection.run))

    async def ask(self, cursor: list[int], events_max: int, filters: Filters) -> list[EventsFound]:
        return await ask_all(
            self.shards, [(shard, GetEvents(after, events_max, 0, filters)) for shard, after in enumerate(cursor)]
        )

    def _begin(self, request: Request, wanted: EventsQuery) -> list[int]:
        count = len(self.shards)
        if text := request.header(b"last-event-id"):
            return parse_cursor("Last-Event-ID", text, count)
        if text := wanted.last_event_id or wanted.after:
            return parse_cursor("last_event_id" if wanted.last_event_id else "after", text, count)
        if wanted.begin not in ("", "start", "now"):
            raise Refusal("VALIDATION_ERROR", "from: expected start or now", field="from")
        return [START if wanted.begin == "start" else NOW] * count


class ClientConnection:
    def __init__(self, listening: EventListener, request: Request, cursor: list[int], filters: Filters) -> None:
        self._reach = request.context.reach
        self._listening = listening
        self._request = request
        self._cursor = cursor
        self._filters = filters
        self._kept: list[EventsFound] = []  # received but not yet sent
        self._at_once = max(EVENTS_HELD // len(cursor), EVENTS_AT_ONCE_MIN)
        self._turn = asyncio.Lock()  # one writer at a time

    async def catch_up(self) -> None:
        self._kept = await self._listening.ask(self._cursor, self._at_once, self._filters)

    async def _catch_up_at_last(self) -> None:
        while True:
            try:
                return await self.catch_up()
            except Refusal as refusal:
                await self._pause(refusal)

    async def run(self, write: Write) -> None:
        """Runs until the client disconnects or the gateway drains."""
        listening = self._listening
        try:
            await first_of(self._tell(write), self._request.hung_up(), listening.draining.wait())
        finally:
            listening.open.discard(self)

    async def _tell(self, write: Write) -> None:
        """Sends the stored events in time order, then the events of each shard as they arrive."""
        await self._write(write, b"retry: %d\n\n" % RETRY_MS)
        while True:
            part, is_all = self._kept_part()
            await self._write(write, part)
            if is_all:
                break
            await self._catch_up_at_last()
        shards = range(len(self._cursor))
        await first_of(self._keep_alive(write), *(self._follow(shard, write) for shard in shards))

    def _kept_part(self) -> tuple[bytes, bool]:
        """The next part of the stored events, and whether it is the last."""
        events, behind = merge_pages(self._cursor, self._kept, self._at_once, self._reach)
        is_all = len(events) == sum(len(one.events) for one in self._kept) and not any(
            one.has_more for one in self._kept
        )
        parts = []
        for shard, one in sorted(enumerate(self._kept), key=lambda item: item[1].missed > 0):
            # The cursor moves past filtered events at once, and past missed events when the gap was sent.
            self._cursor[shard] = one.events[0].seq - 1 if one.events else one.upto
            if one.missed:
                parts.append(self._frame(b"gap", Gap(shard, one.missed)))
        parts += [self._event(event) for event in events]
        self._cursor = behind
        self._kept = []
        parts.append(b"id: %b\n\n" % format_cursor(behind).encode())  # to resume from, even before the first event
        return b"".join(parts), is_all

    async def _follow(self, shard: int, write: Write) -> None:
        while True:
            try:
                found = await self._park(shard)
            except Refusal as refusal:  # the other shards continue
                await self._pause(refusal)
                continue
            async with self._turn:
                parts = []
                if found.missed:
                    self._cursor[shard] += found.missed
                    parts.append(self._frame(b"gap", Gap(shard, found.missed)))
                parts += [self._event(event_view(shard, told, self._reach)) for told in found.events]
                self._cursor[shard] = found.upto
                if parts:
                    await self._write(write, b"".join(parts))

    async def _park(self, shard: int) -> EventsFound:
        shards = self._listening.shards
        ask = GetEvents(self._cursor[shard], self._at_once, WAIT_MS, self._filters)
        call = shards.ask(shard, ask, WAIT_MS)
        try:
            found: EventsFound = await call
            return found
        finally:
            if call.future.cancelled():  # the client disconnected: end the wait at the shard
                shards.recall(call)

    async def _pause(self, refusal: Refusal) -> None:
        log.info("events wait for a shard", reason=refusal.message)
        await asyncio.sleep(ASK_AGAIN_S)

    async def _keep_alive(self, write: Write) -> None:
        """Sends the cursor: a client that filters for rare events skips all others when it reconnects."""
        while True:
            await asyncio.sleep(KEEPALIVE_S)
            async with self._turn:
                await self._write(write, b":keepalive\nid: %b\n\n" % format_cursor(self._cursor).encode())

    def _event(self, event: EventView) -> bytes:
        self._cursor[event.shard] = event.seq
        self._listening.curtain.event(event, self._request.principal)
        return self._frame(event.type.encode(), event)

    def _frame(self, name: bytes, data: Any) -> bytes:
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (format_cursor(self._cursor).encode(), name, to_json(data))

    async def _write(self, write: Write, piece: bytes) -> None:
        try:
            async with asyncio.timeout(WRITE_S):
                await write(piece)
        except TimeoutError:
            log.info("a listener does not read", seconds=WRITE_S)
            raise Disconnected from None


async def first_of(*works: Coroutine[Any, Any, Any]) -> None:
    """Runs all until one ends, with or without an error; then cancels the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
