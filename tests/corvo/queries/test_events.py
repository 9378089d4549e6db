"""Events: what a question finds, what a cursor says, how the shards' events become one list."""

import pytest

from corvo.model.errors import Refusal
from corvo.model.events import EVENT_NAMES, Event, EventKind
from corvo.model.reach import Reach
from corvo.queries import events as events_module
from corvo.queries.events import (
    NOW as NEWEST,
)
from corvo.queries.events import (
    START,
    EventsFound,
    Filters,
    GetEvents,
    event_view,
    format_cursor,
    merge_pages,
    parse_cursor,
    parse_filters,
)
from corvo.state import event_log as journal_module
from corvo.state.event_log import Told
from corvo.wire import decode_ask, decode_result, encode, reply_to
from tests.docs.pages import ROOT
from tests.support.builders import ack, enqueue, fetch, job_id, new_job
from tests.support.machine import Machine


@pytest.fixture
def machine() -> Machine:
    """Six events: two jobs of mail are born, one of sms; the first is fetched and done; the sms is fetched."""
    machine = Machine()
    machine.one(enqueue(1, 2, new_job(3, "sms")))
    machine.one(fetch())
    machine.apply(ack(1), fetch("sms", claim=2))
    return machine


def look(machine: Machine, after: int = 0, **rest: object) -> EventsFound:
    ask = decode_ask(encode(GetEvents(after, **rest)))  # type: ignore[arg-type]
    found: EventsFound = decode_result(GetEvents, reply_to(1, ask.look(machine.tables.event_log)))
    return found


def seqs(found: EventsFound) -> list[int]:
    return [told.seq for told in found.events]


def test_everything_after_a_point_in_order(machine: Machine) -> None:
    assert seqs(look(machine)) == [1, 2, 3, 4, 5, 6]
    assert seqs(look(machine, 4)) == [5, 6]
    assert look(machine, 6) == EventsFound(6, [])
    assert look(machine, 99) == EventsFound(99, []), "a replica that is behind waits for its own news"


def test_pages_join_without_a_gap_or_a_repetition(machine: Machine) -> None:
    found: list[int] = []
    after = 0
    while True:
        page = look(machine, after, events_max=2)
        found += seqs(page)
        after = page.upto
        assert page.has_more == (after < 6)
        if not page.has_more:
            break

    assert found == [1, 2, 3, 4, 5, 6]


def test_newest_and_start_name_a_place_without_knowing_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(machine, NEWEST) == EventsFound(6, [])
    assert seqs(look(machine, START)) == [1, 2, 3, 4, 5, 6]
    monkeypatch.setattr(journal_module, "EVENTS_KEPT", 1)
    machine.one(enqueue(4))

    assert (seqs(look(machine, START)), look(machine, START).missed) == ([7], 0)


def test_a_cursor_that_is_too_old_is_told_what_it_missed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "EVENTS_KEPT", 2)
    machine.one(enqueue(4))

    assert machine.tables.event_log.first == 5
    assert [(look(machine, after).missed, seqs(look(machine, after))) for after in (0, 3, 4, 5)] == [
        (4, [5, 6, 7]),
        (1, [5, 6, 7]),
        (0, [5, 6, 7]),
        (0, [6, 7]),
    ]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(queues=("sms",)), [3, 6]),
        (Filters(job_ids=(job_id(1),)), [1, 4, 5]),
        (Filters(types=(EventKind.STARTED,)), [4, 6]),
        (Filters(queues=("sms",), types=(EventKind.STARTED,)), [6]),
        (Filters(queues=("sms", "mail"), types=(EventKind.STARTED, EventKind.COMPLETED)), [4, 5, 6]),
        (Filters(queues=("none",)), []),
    ],
)
def test_filters_pass_what_every_list_names(machine: Machine, filters: Filters, expected: list[int]) -> None:
    found = look(machine, filters=filters)

    assert seqs(found) == expected
    assert found.upto == 6, "what was not asked for is behind the listener all the same"


def test_a_rare_event_is_looked_for_in_steps(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "LOOKED_AT_MAX", 4)

    first = look(machine, filters=Filters(types=(EventKind.COMPLETED,)))
    second = look(machine, first.upto, filters=Filters(types=(EventKind.COMPLETED,)))

    assert (first.upto, seqs(first), first.has_more) == (4, [], True)
    assert (second.upto, seqs(second), second.has_more) == (6, [5], False)


def test_an_answer_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "BYTES_PER_ANSWER", 1_500)
    machine = Machine()
    for number in range(5):
        machine.tables.event_log.tell(EventKind.PROGRESS, job_id(number), "mail", b'"' + b"x" * 900 + b'"')
    machine.one(enqueue(9))

    assert seqs(look(machine)) == [1, 2]


@pytest.mark.parametrize("cursor", [[0], [7], [0, 0], [5, 12, 2**53 - 1]])
def test_a_cursor_is_read_as_it_was_written(cursor: list[int]) -> None:
    assert parse_cursor("after", format_cursor(cursor), len(cursor)) == cursor


def test_short_forms_of_a_cursor() -> None:
    assert parse_cursor("after", "17", 1) == [17]
    assert parse_cursor("after", "0", 2) == [START, START]
    assert parse_cursor("after", "1:5", 3) == [START, 5, START]


@pytest.mark.parametrize(
    "text", ["17", "x", "0:", ":1", "0:-1", "0:1,", "2:1", "0:1.5", "0:99999999999999999", "٣:1", "0:²", "0:1,1:2 "]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="invalid cursor") as raised:
        parse_cursor("after", text, 2)
    assert (raised.value.code, raised.value.field) == ("VALIDATION_ERROR", "after")


def test_filters_are_read_from_lists_with_commas() -> None:
    reach = Reach("acme", ("a*",))

    assert parse_filters(reach, "a,b", "", "enqueued,queue_paused") == Filters(
        ("a", "b"), (), (EventKind.ENQUEUED, EventKind.QUEUE_PAUSED), reach
    )
    assert parse_filters(reach, "", "x", "") == Filters(job_ids=("x",), reach=reach)


@pytest.mark.parametrize(
    ("queues", "job_ids", "types", "field"),
    [("a b", "", "", "queues"), ("", "", "finished", "types"), ("", ",".join("x" * 101), "", "job_ids")],
)
def test_filters_that_cannot_be_meant_are_refused(queues: str, job_ids: str, types: str, field: str) -> None:
    with pytest.raises(Refusal) as raised:
        parse_filters(Reach(), queues, job_ids, types)
    assert (raised.value.code, raised.value.field) == ("VALIDATION_ERROR", field)


def told(seq: int, at: int) -> Told:
    return Told(seq, at, Event(EventKind.ENQUEUED, job_id(seq), "mail"))


def test_shards_are_merged_by_time_and_the_cursor_stands_behind_what_was_taken() -> None:
    found = [
        EventsFound(9, [told(5, 10), told(6, 30), told(8, 40)]),
        EventsFound(3, [told(2, 20), told(3, 30)]),
        EventsFound(7, []),
    ]

    events, cursor = merge_pages([4, 1, 2], found, 3, Reach())
    rest, end = merge_pages([4, 1, 2], found, 99, Reach())

    assert [(event.shard, event.seq) for event in events] == [(0, 5), (1, 2), (0, 6)]
    assert cursor == [7, 2, 7]
    assert [(event.shard, event.seq) for event in rest] == [(0, 5), (1, 2), (0, 6), (1, 3), (0, 8)]
    assert end == [9, 3, 7]


def test_every_type_of_event_stands_in_the_guide() -> None:
    guide = (ROOT / "docs/how-to/follow-events.md").read_text()

    assert len(set(EVENT_NAMES)) == len(EventKind)
    assert [name for name in EVENT_NAMES if f"`{name}`" not in guide] == []


def test_events_of_another_namespace_are_passed_over() -> None:
    machine = Machine()
    machine.one(enqueue(new_job(1, "mail"), new_job(2, "acme|mail"), new_job(3, "acme|sms"), new_job(4, "beta|mail")))

    def found(reach: Reach | None) -> EventsFound:
        return look(machine, filters=Filters(reach=reach))

    assert seqs(found(None)) == seqs(found(Reach())) == [1]
    assert seqs(found(Reach("acme"))) == [2, 3]
    assert seqs(found(Reach("acme", ("s*",)))) == [3]
    assert found(Reach("gamma")) == EventsFound(4, []), "the cursor moves past what others did"


def test_a_batch_s_event_has_a_namespace_and_no_queue() -> None:
    machine = Machine()
    with machine.by_hand() as tables:
        tables.event_log.tell(EventKind.BATCH_COMPLETED, "", "acme|", b"{}")

    assert seqs(look(machine, filters=Filters(reach=Reach("acme")))) == [1]
    for reach in (Reach(), Reach("beta"), Reach("acme", ("m*",))):
        assert seqs(look(machine, filters=Filters(reach=reach))) == []


@pytest.mark.parametrize(("scope", "is_shown"), [((), True), (("mail", "sms"), True), (("sms",), False)])
def test_a_key_with_a_scope_does_not_learn_which_queue_a_job_left(scope: tuple[str, ...], is_shown: bool) -> None:
    moved = Told(1, 0, Event(EventKind.MOVED, job_id(1), "sms", b'{"from":"mail"}'))

    view = event_view(0, moved, Reach(scope=scope))

    assert (view.data is not None) is is_shown
