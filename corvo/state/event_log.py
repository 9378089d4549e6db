"""The event log: one page for each log entry that caused events. The newest `EVENTS_KEPT` events are kept.

It is part of the replicated state: every replica has the same events under the same numbers, so a listener can continue
on another node. Events are numbered from 1 without gaps; the key of a page is the number of its first event. A listener
remembers one number, and the server can count the events that it missed.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec

from corvo.model.events import Event, EventKind, EventPage
from corvo.model.limits import EVENTS_KEPT
from corvo.state import keys
from corvo.state.kv import KV, Overlay

NEWEST_EVENTS = 2_000  # kept decoded: listeners that are up to date cost no read and no decoding

encode = msgspec.msgpack.Encoder().encode
decode_page = msgspec.msgpack.Decoder(EventPage).decode


class Told(NamedTuple):
    seq: int
    at: int
    event: Event


class EventLog:
    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self.events: list[Event] = []  # of the current entry
        self.told: list[Event] = []  # of the entry that was sealed last
        self._pages: deque[int] = deque()  # number of each page's first event
        self._newest: deque[tuple[int, EventPage]] = deque()
        self.last = 0  # number of the newest event

    def recall(self, kv: KV) -> None:
        newest = b""
        for key, page in kv.scan(keys.EVENTS, keys.prefix_end(keys.EVENTS)):
            self._pages.append(keys.event_number(key))
            newest = page
        if newest:
            self.last = self._pages[-1] + len(decode_page(newest).events) - 1

    def tell(self, kind: EventKind, job_id: str, queue: str, data: bytes = b"") -> None:
        self.events.append(Event(kind, job_id, queue, data))

    def seal(self, now: int) -> None:
        """Write the entry's page, and drop the oldest pages beyond the bound."""
        self.told = self.events
        if not self.events:
            return
        page = EventPage(now, self.events)
        self.events = []
        first = self.last + 1
        self._overlay.puts[keys.event(first)] = encode(page)
        self.last += len(page.events)
        pages, newest = self._pages, self._newest
        pages.append(first)
        while len(pages) > 1 and pages[1] <= self.last - EVENTS_KEPT + 1:
            self._overlay.puts[keys.event(pages.popleft())] = None
        newest.append((first, page))
        while len(newest) > 1 and newest[1][0] <= self.last - NEWEST_EVENTS + 1:
            newest.popleft()

    @property
    def first(self) -> int:
        """Number of the oldest event that is kept; without any, the number of the next event."""
        return self._pages[0] if self._pages else self.last + 1

    def after(self, seq: int) -> Iterator[Told]:
        """The events with a greater number, in order, read lazily."""
        seq = max(seq, self.first - 1)
        if seq >= self.last:
            return
        for first, page in self._pages_from(seq + 1):
            skipped = max(seq + 1 - first, 0)
            for number, event in enumerate(islice(page.events, skipped, None), first + skipped):
                yield Told(number, page.at, event)

    def _pages_from(self, seq: int) -> Iterator[tuple[int, EventPage]]:
        """The page that holds this event, and all later pages."""
        newest = self._newest
        if newest and newest[0][0] <= seq:
            found = []
            for numbered in reversed(newest):  # newest first: a listener that is up to date pays only for new events
                found.append(numbered)
                if numbered[0] <= seq:
                    break
            yield from reversed(found)
            return
        start = self._page_of(seq)
        for key, value in self._overlay.scan(keys.event(start), keys.prefix_end(keys.EVENTS)):
            yield keys.event_number(key), decode_page(value)

    def _page_of(self, seq: int) -> int:
        """The start of the page that holds this event. Never before the oldest page: dropped pages left tombstones."""
        pages = self._pages
        low, high = 0, len(pages)
        while high - low > 1:
            middle = (low + high) // 2
            if pages[middle] <= seq:
                low = middle
            else:
                high = middle
        return pages[low]
