"""Events from a server: pages of what is kept, or a stream that goes on through broken connections.

A stream that breaks is taken up again after the last id that came, on whatever node answers at the address: no event is
lost and none comes twice. Where the server says that events are gone, the event `gap` says how many.
"""

from collections.abc import Callable, Iterator

from .answers import EventView, Gap
from .bodies import EventsPageQuery, EventsQuery
from .http import Client
from .sse import EventCursor

PAGE = 1_000


class EventStream:
    """`cursor` is the place behind the last event that came."""

    def __init__(self, client: Client, filters: dict[str, str], cursor: str = "") -> None:
        self._client = client
        self._filters = {name: value for name, value in filters.items() if value}
        self.cursor = cursor
        self.has_more = False  # of those that are kept

    def kept(self, limit: int) -> Iterator[EventView]:
        """Those that the server still has, oldest first."""
        left = limit
        while left > 0:
            page = self._client.cluster_events(EventsPageQuery(self.cursor, min(left, PAGE), **self._filters))
            self.cursor, self.has_more = page.next, page.has_more
            left -= len(page.events)
            yield from page.events
            if not page.has_more:
                return

    def stream(self, begin: str, pause: Callable[[str], None]) -> Iterator[EventView | Gap]:
        """For ever. `pause` is told of each break, and waits. A server that refuses at first, or cannot be reached at
        first, is the caller's to know."""
        place = EventCursor(EventsQuery(begin=begin, **self._filters), self.cursor)
        stream: Iterator[EventView | Gap] = self._client.follow(place, pause)
        for heard in stream:
            self.cursor = place.last_id
            yield heard
