"""The journal: every event once and in order, wherever a listener stopped, through restarts and dropped pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.events import Event, EventKind
from corvo.state import event_log as journal_module
from corvo.state import keys
from corvo.state.event_log import EventLog, Told
from corvo.state.kv import MemoryKV, Overlay
from tests.support.builders import NOW, SECOND, ack, enqueue, fetch, job_id
from tests.support.machine import Machine


class Book:
    """A journal over a map, with all that was ever told beside it."""

    def __init__(self) -> None:
        self.kv = MemoryKV()
        self.told: list[Told] = []
        self.open()

    def open(self) -> None:
        self.overlay = Overlay(self.kv)
        self.event_log = EventLog(self.overlay)
        self.event_log.recall(self.kv)

    def entry(self, size: int) -> None:
        at = NOW + len(self.told)
        for _ in range(size):
            number = len(self.told) + 1
            self.event_log.tell(EventKind.ENQUEUED, job_id(number), "mail")
            self.told.append(Told(number, at, Event(EventKind.ENQUEUED, job_id(number), "mail")))
        self.event_log.seal(at)
        self.overlay.seal()

    def flush(self) -> None:
        self.kv.write(self.overlay.changes)
        self.overlay.changes = {}

    def pages(self) -> int:
        return sum(1 for _ in self.overlay.scan(keys.EVENTS, keys.prefix_end(keys.EVENTS)))


_steps = st.lists(st.one_of(st.integers(0, 7), st.sampled_from(["flush", "restart"])), max_size=40)


@given(_steps, st.integers(1, 20), st.integers(1, 10))
def test_from_every_point_every_event_that_is_kept_comes_once_and_in_order(
    steps: list[int | str], kept: int, newest: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "EVENTS_KEPT", kept)
        patch.setattr(journal_module, "NEWEST_EVENTS", min(newest, kept))
        book = Book()
        for step in steps:
            if isinstance(step, int):
                book.entry(step)
            else:
                book.flush()
                if step == "restart":
                    book.open()
        event_log, told = book.event_log, book.told

        assert event_log.last == len(told)
        assert len(told) - event_log.first + 1 >= min(kept, len(told)), "as many as are promised"
        for seq in range(len(told) + 2):
            assert list(event_log.after(seq)) == told[max(seq, event_log.first - 1) :]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30), st.lists(st.integers(1, 4)))
def test_a_listener_that_reads_in_pieces_while_others_write_misses_nothing(
    entries: list[int], pieces: list[int]
) -> None:
    book, heard = Book(), list[Told]()
    for number, size in enumerate(entries):
        book.entry(size)
        if number % 3 == 2:
            book.flush()
            book.open()
        for count in pieces[number : number + 1]:
            seq = heard[-1].seq if heard else 0
            heard += [told for told, _ in zip(book.event_log.after(seq), range(count), strict=False)]
    heard += book.event_log.after(heard[-1].seq if heard else 0)

    assert heard == book.told


def test_old_pages_go_one_for_one_and_an_entry_larger_than_the_bound_stays_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_module, "EVENTS_KEPT", 10)
    book = Book()
    for _ in range(100):
        book.entry(1)
    assert (book.pages(), book.event_log.first, book.event_log.last) == (10, 91, 100)

    book.entry(25)

    assert (book.pages(), book.event_log.first, book.event_log.last) == (1, 101, 125)
    assert [told.seq for told in book.event_log.after(0)] == list(range(101, 126))


def test_an_entry_without_events_leaves_no_page() -> None:
    book = Book()
    book.entry(0)

    assert (book.pages(), book.event_log.first, book.event_log.last) == (0, 1, 0)
    assert list(book.event_log.after(0)) == []


def test_a_machine_tells_the_life_of_a_job_and_replicas_tell_the_same() -> None:
    machine = Machine()
    machine.one(enqueue(1))
    machine.one(fetch(), at=NOW + SECOND)
    machine.one(ack(1), at=NOW + 2 * SECOND)
    replica = Machine()
    replica.follow(machine.log)

    told = list(machine.tables.event_log.after(0))

    assert [(one.seq, one.at, one.event.kind) for one in told] == [
        (1, NOW, EventKind.ENQUEUED),
        (2, NOW + SECOND, EventKind.STARTED),
        (3, NOW + 2 * SECOND, EventKind.COMPLETED),
    ]
    assert {(one.event.job_id, one.event.queue) for one in told} == {(job_id(1), "mail")}
    assert list(replica.tables.event_log.after(0)) == told
    machine.flush()
    machine.restart()
    assert list(machine.tables.event_log.after(0)) == told


def test_what_is_refused_tells_nothing() -> None:
    machine = Machine()
    machine.one(ack(1))

    assert machine.tables.event_log.last == 0
