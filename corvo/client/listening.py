"""Events from a server: pages of what is kept, or a stream that goes on through broken connections.

A stream that breaks is taken up again after the last id that came, on whatever node answers at the address: no event is
lost and none comes twice. Where the server says that events are gone, the event `gap` says how many.
"""

from collections.abc import Callable, Iterator

import httpx
import msgspec

from .answers import EventView, Gap
from .bodies import EventsPageQuery
from .calls import PREFIX, ServerRefused, refusal_of
from .http import Client, Unreachable

SILENCE_S = 40.0  # the server says something every 15 s; after this long without a word it is gone
PAGE = 1_000
_decode_event = msgspec.json.Decoder(EventView).decode
_decode_gap = msgspec.json.Decoder(Gap).decode


class Unreadable(ServerRefused):
    """An event that would be no other if it came again."""


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
        has_begun = False
        while True:
            try:
                for heard in self._connection(begin):
                    has_begun = True
                    if heard is not None:
                        yield heard
                trouble = "the server ended the stream"
            except (ServerRefused, Unreachable) as error:
                if not has_begun or isinstance(error, Unreadable):
                    raise
                trouble = str(error)
            pause(trouble)

    def _connection(self, begin: str) -> Iterator[EventView | Gap | None]:
        """What is heard on one connection; None for a sign of life."""
        headers = {"accept": "text/event-stream"}
        query = dict(self._filters)
        if self.cursor:
            headers["last-event-id"] = self.cursor
        elif begin:
            query["from"] = begin
        with self._client.open_stream(f"{PREFIX}/events", query, headers, SILENCE_S) as response:
            if response.status_code != 200:
                raise refusal_of(response.status_code, response.headers, response.read())
            for frame in _frames(response):
                data = frame.get("data")
                if data is None:
                    self.cursor = frame.get("id", self.cursor)
                    yield None
                    continue
                heard = _read(data, frame.get("event") == "gap")
                self.cursor = frame.get("id", self.cursor)
                yield heard


def _read(data: str, is_gap: bool) -> EventView | Gap:
    try:
        return _decode_gap(data) if is_gap else _decode_event(data)
    except msgspec.MsgspecError as error:
        raise Unreadable(
            "UNREADABLE_ANSWER", f"an event cannot be read ({error}): is the server of another version?", 200
        ) from None


def _frames(response: httpx.Response) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if not line:
            yield fields
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
