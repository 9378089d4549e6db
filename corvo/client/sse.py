"""Server-sent events: what to ask for, how to read it, where to go on after a break. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from .answers import BulkProgress, EventView, Gap
from .bodies import EventsQuery
from .calls import PREFIX, ServerRefused, query_of

SILENCE_S = 40.0  # the server says something every 15 s; after this long without a word it is gone
LINE_CHARS_MAX = 4 * 1024 * 1024  # far more than an event may have
ACCEPT = {"accept": "text/event-stream"}
_ENDED = frozenset({"completed", "failed", "cancelled"})
_decode_event = msgspec.json.Decoder(EventView).decode
_decode_gap = msgspec.json.Decoder(Gap).decode
_decode_progress = msgspec.json.Decoder(BulkProgress).decode


class Unreadable(ServerRefused):
    """An event that would be no other if it came again."""


class SseFrame(NamedTuple):
    event: str
    id: str | None  # None: it has none
    data: str | None  # None: a sign of life


H = TypeVar("H", covariant=True)


class StreamCursor(Protocol[H]):
    """The place of a reader in a stream, and how to go on from there."""

    def has_ended(self) -> bool:
        """Whether nothing more will come."""

    def request(self) -> tuple[str, Mapping[str, Any], Mapping[str, str]]:
        """Path, query and headers of the next connection."""

    def read(self, frame: SseFrame) -> H | None:
        """What a frame says; None for a sign of life."""


class FrameReader:
    """Lines in, frames out."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> SseFrame | None:
        if not line:
            fields, self._fields = self._fields, {}
            return SseFrame(fields.get("event", "message"), fields.get("id"), fields.get("data"))
        if not line.startswith(":"):
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
        return None


class EventCursor:
    """The place of a reader in the stream of events."""

    def __init__(self, query: EventsQuery | None, after: str) -> None:
        self._query = query or EventsQuery()
        self.last_id = after or self._query.last_event_id or self._query.after

    def has_ended(self) -> bool:
        return False

    def request(self) -> tuple[str, Mapping[str, Any], Mapping[str, str]]:
        query = query_of(self._query)
        query.pop("last_event_id", None)
        query.pop("after", None)
        if self.last_id:
            query.pop("from", None)
            return f"{PREFIX}/events", query, {**ACCEPT, "last-event-id": self.last_id}
        return f"{PREFIX}/events", query, ACCEPT

    def read(self, frame: SseFrame) -> EventView | Gap | None:
        heard = None if frame.data is None else _read_event(frame.data, frame.event == "gap")
        if frame.id is not None:
            self.last_id = frame.id
        return heard


class ProgressCursor:
    """The progress of a bulk operation. The server begins each connection with the state as it is."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_over = False

    def has_ended(self) -> bool:
        return self._is_over

    def request(self) -> tuple[str, Mapping[str, Any], Mapping[str, str]]:
        return self._path, {}, ACCEPT

    def read(self, frame: SseFrame) -> BulkProgress | None:
        if frame.data is None:
            return None
        try:
            progress = _decode_progress(frame.data)
        except msgspec.MsgspecError as error:
            raise unreadable(error) from None
        self._is_over = progress.status in _ENDED
        return progress


def _read_event(data: str, is_gap: bool) -> EventView | Gap:
    try:
        return _decode_gap(data) if is_gap else _decode_event(data)
    except msgspec.MsgspecError as error:
        raise unreadable(error) from None


def unreadable(error: msgspec.MsgspecError) -> Unreadable:
    return Unreadable("UNREADABLE_ANSWER", f"an event cannot be read ({error}): is the server of another version?", 200)
