"""Events of jobs and queues, from a cursor on. Any replica answers, from its own copy of the event log.

Each shard numbers its events without gaps. A cursor holds, for every shard, the last event that was seen
(`0:1234,1:77`), and is valid on every node. Events of one shard are in order; events of different shards are ordered
only by their clocks.
"""

from collections.abc import Callable
from functools import cache
from heapq import merge
from itertools import islice
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint, Query
from corvo.model.errors import invalid
from corvo.model.events import EVENT_NAMES, Event, EventKind
from corvo.model.globs import is_in_scope
from corvo.model.job import Count, SpanMs
from corvo.model.json_input import to_raw
from corvo.model.limits import QUALIFIED_NAME, SHARDS_MAX
from corvo.model.name_fields import NameKind
from corvo.model.namespaces import shown_name
from corvo.model.reach import Reach
from corvo.state.event_log import EventLog, Told

# Instead of the number of an event: the newest event, and the point before the oldest event that is kept.
NOW = -1
START = -2
EVENTS_PER_PAGE = 1_000
FILTERS_MAX = 100  # names in one list
LOOKED_AT_MAX = 10_000  # events in one query: a filter that matches rarely must not block the shard
BYTES_PER_ANSWER = 1024 * 1024
_NUMBER_DIGITS = 16


class EventsFound(msgspec.Struct, array_like=True):
    upto: int  # events up to this one were checked
    events: list[Told]
    missed: int = 0  # events after the cursor that are no longer kept
    has_more: bool = False  # there are events after `upto`


class Filters(msgspec.Struct, array_like=True, frozen=True):
    """An event matches when it is in reach and every list that is not empty contains it."""

    queues: tuple[str, ...] = ()
    job_ids: tuple[str, ...] = ()
    types: tuple[EventKind, ...] = ()
    reach: Reach | None = None  # None: what a gateway of a former version may see, the default namespace

    def sieve(self) -> Callable[[Event], bool]:
        """A test for events. Uses sets, because a long list is compared with thousands of events."""
        queues, job_ids, types = frozenset(self.queues), frozenset(self.job_ids), frozenset(self.types)
        in_reach = cache((self.reach or Reach()).holds)  # few queues, many events; a new cache for each query
        return lambda event: (
            (not queues or event.queue in queues)
            and (not types or event.kind in types)
            and (not job_ids or event.job_id in job_ids)
            and in_reach(event.queue)
        )


class GetEvents(Query, tag=1040):
    """With `wait_ms` the answer waits until an event matches. The local replica answers: one that is behind has fewer
    events, never different ones."""

    after: Annotated[int, Meta(ge=START, le=2**53 - 1)]
    events_max: Count = EVENTS_PER_PAGE
    wait_ms: SpanMs = 0
    filters: Filters = Filters()

    result: ClassVar[Any] = EventsFound

    def look(self, event_log: EventLog) -> EventsFound:
        if self.after == NOW:
            return EventsFound(event_log.last, [])
        dropped = event_log.first - 1
        found = EventsFound(max(self.after, dropped), [])
        if self.after != START:
            found.missed = found.upto - self.after
        size = 0
        passes = self.filters.sieve()
        for told in islice(event_log.after(found.upto), LOOKED_AT_MAX):
            if len(found.events) >= self.events_max or size > BYTES_PER_ANSWER:
                break
            if passes(told.event):
                found.events.append(told)
                size += len(told.event.data) + 100
            found.upto = told.seq
        found.has_more = found.upto < event_log.last
        return found


# What clients see


class EventView(msgspec.Struct, omit_defaults=True):
    seq: Annotated[int, Meta(description="number within its shard, which counts the events of all tenants")]
    shard: int
    type: str
    at_ns: int
    job_id: str = ""
    queue: str = ""
    data: Any = None


class Gap(msgspec.Struct):
    """Data of the event `gap`: how many events of a shard, of any tenant, came after the cursor and are no longer
    kept."""

    shard: int
    missed: int


class EventsPage(msgspec.Struct, omit_defaults=True):
    events: list[EventView]
    next: Annotated[str, Meta(description="`after_seq` of the next page")]
    has_more: bool = False
    missed: Annotated[int, Meta(description="events after the cursor, of any tenant, that are no longer kept")] = 0


_LIST = "names separated by commas"


QueueNames = Annotated[str, Meta(pattern=r"^[^|]*\Z", description=_LIST), NameKind.QUEUES]


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True):
    last_event_id: Annotated[
        str, Meta(description="continue after this event; the header `Last-Event-ID` takes precedence")
    ] = ""
    after: Annotated[str, Meta(description="the same")] = ""
    begin: Annotated[str, Meta(description="`start`: with the oldest event that is kept")] = msgspec.field(
        name="from", default=""
    )
    queues: QueueNames = ""
    job_ids: Annotated[str, Meta(description=_LIST)] = ""
    types: Annotated[str, Meta(description=_LIST)] = ""


class EventsPageQuery(msgspec.Struct, forbid_unknown_fields=True):
    after_seq: Annotated[str, Meta(description="`next` of the previous page; 0 or empty: from the oldest event")] = ""
    limit: Annotated[int, Meta(ge=1, le=EVENTS_PER_PAGE)] = 100
    queues: QueueNames = ""
    job_ids: Annotated[str, Meta(description=_LIST)] = ""
    types: Annotated[str, Meta(description=_LIST)] = ""


def event_view(shard: int, told: Told, reach: Reach) -> EventView:
    event = told.event
    name = EVENT_NAMES[event.kind]
    data = _within(event.data, reach) if reach.scope and event.kind is EventKind.MOVED else event.data
    return EventView(told.seq, shard, name, told.at, event.job_id, shown_name(event.queue), to_raw(data))


def _within(data: bytes, reach: Reach) -> bytes:
    """Without the name of a queue that a job came from, where that is outside the scope."""
    came_from = msgspec.json.decode(data).get("from", "") if data else ""
    return data if is_in_scope(came_from, reach.scope) else b""


def parse_filters(reach: Reach, queues: str, job_ids: str, types: str) -> Filters:
    names = _names("queues", queues)
    for name in names:
        if not QUALIFIED_NAME.fullmatch(name):
            raise invalid("queues", f"{shown_name(name)!r} is not a valid queue name")
    kinds = []
    for name in _names("types", types):
        if name not in EVENT_NAMES:
            raise invalid("types", f"{name!r} is not an event type; the types are {', '.join(EVENT_NAMES)}")
        kinds.append(EventKind(EVENT_NAMES.index(name)))
    return Filters(names, _names("job_ids", job_ids), tuple(kinds), reach)


def _names(field: str, text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    if len(names) > FILTERS_MAX:
        raise invalid(field, f"{len(names)} names; at most {FILTERS_MAX} are allowed")
    return names


def format_cursor(cursor: list[int]) -> str:
    return ",".join(f"{shard}:{seq}" for shard, seq in enumerate(cursor))


def parse_cursor(field: str, text: str, shard_count: int) -> list[int]:
    """A shard that is not in the cursor is read from its start. With one shard, a plain number is enough."""
    cursor = [START] * shard_count
    if text in ("", "0"):
        return cursor
    if shard_count == 1 and text.isdecimal():
        text = f"0:{text}"
    for part in text.split(",")[: SHARDS_MAX + 1]:
        shard, _, seq = part.partition(":")
        if not _is_number(shard) or not _is_number(seq) or int(shard) >= shard_count:
            raise invalid(
                field,
                "invalid cursor; send `next` of the previous page, or 0 to start at the oldest event",
            )
        cursor[int(shard)] = int(seq)
    return cursor


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS and int(text) < 2**53


def merge_pages(
    cursor: list[int], found: list[EventsFound], limit: int, reach: Reach
) -> tuple[list[EventView], list[int]]:
    """The first `limit` events of all shards by time, and the cursor after them."""
    streams = [[event_view(shard, told, reach) for told in one.events] for shard, one in enumerate(found)]
    ordered = list(islice(merge(*streams, key=lambda event: event.at_ns), limit))
    taken = [0] * len(found)
    for event in ordered:
        taken[event.shard] += 1
    behind = [
        one.upto if taken[shard] == len(one.events) else one.events[taken[shard]].seq - 1
        for shard, one in enumerate(found)
    ]
    return ordered, [max(*both) for both in zip(cursor, behind, strict=True)]


ENDPOINTS = (
    Endpoint(
        name="events",
        access="events:read",
        method="GET",
        path="/events",
        summary="Events as they happen, as a stream of server-sent events",
        query=EventsQuery,
        answers={200: EventView},
        media="text/event-stream",
    ),
    Endpoint(
        name="cluster_events",
        access="events:read",
        method="GET",
        path="/cluster/events",
        summary="One page of the events that are kept",
        query=EventsPageQuery,
        answers={200: EventsPage},
    ),
)
