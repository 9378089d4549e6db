"""Listeners at a replica: they wait without being looked at, and are answered once, with all that came."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from corvo.model.errors import Refused
from corvo.model.events import EventKind
from corvo.queries.events import NOW as NEWEST
from corvo.queries.events import EventsFound, Filters, GetEvents
from corvo.state.event_log import EventLog, Told
from corvo.wire import Call
from shards.intake import event_waits as listeners_module
from shards.intake.event_waits import GATHER_NS
from tests.shards.replica_group import Group
from tests.shards.rig import GATEWAY, WAITING, Rig, a_directory
from tests.support.builders import MS, SECOND, ack, enqueue, fetch

COMPLETED = Filters(types=(EventKind.COMPLETED,))


@pytest.fixture
def rig() -> Iterator[Rig]:
    with a_directory() as path:
        rig = Rig(path / "shard")
        yield rig
        rig.kill()


def seqs(found: EventsFound) -> list[int]:
    return [told.seq for told in found.events]


def listen(rig: Rig, after: int = 0, wait_ms: int = 20_000, filters: Filters = Filters()) -> tuple[bytes, int]:
    assert rig.one(GetEvents(after, 1_000, wait_ms, filters)) is WAITING
    return rig.last_key


def test_what_is_there_is_told_at_once(rig: Rig) -> None:
    rig.ask(enqueue(1, 2))

    assert seqs(rig.one(GetEvents(0, wait_ms=20_000))) == [1, 2]
    assert rig.one(GetEvents(2)) == EventsFound(2, [])
    assert rig.one(GetEvents(NEWEST)) == EventsFound(2, [])


def test_a_listener_waits_for_news_and_hears_them_in_the_turn_that_brings_them(rig: Rig) -> None:
    key = listen(rig)
    rig.advance(SECOND)

    rig.ask(enqueue(1), enqueue(2))

    assert seqs(rig.answers[key]) == [1, 2]
    assert len(rig.replica.admission.event_waits) == 0


def test_while_nothing_happens_nobody_looks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.ask(enqueue(1))
    key = listen(rig, after=1)
    rig.sleep_through(SECOND)
    monkeypatch.setattr(EventLog, "after", lambda *_: pytest.fail("looked"))

    turns = rig.sleep_through(10 * SECOND)

    assert key not in rig.answers
    assert turns <= 11, "the replica sleeps"


def test_patience_ends_with_an_empty_answer_that_says_how_far_it_looked(rig: Rig) -> None:
    key = listen(rig, filters=COMPLETED, wait_ms=5_000)
    rig.advance(SECOND)
    rig.ask(enqueue(1))
    assert key not in rig.answers, "nothing that it asked for"

    rig.sleep_through(4 * SECOND)

    assert rig.answers[key] == EventsFound(1, [])


def test_a_listener_is_woken_only_by_what_it_asked_for(rig: Rig) -> None:
    done = listen(rig, filters=COMPLETED)
    other = listen(rig, filters=Filters(queues=("sms",)))
    rig.advance(SECOND)
    rig.ask(enqueue(1))
    rig.ask(fetch())
    rig.ask(ack(1))

    assert seqs(rig.answers[done]) == [3]
    assert other not in rig.answers
    rig.ask(enqueue(2, queue="sms"))
    assert seqs(rig.answers[other]) == [4]


def test_news_that_follow_each_other_closely_are_told_together(rig: Rig) -> None:
    key = listen(rig)
    for number in range(1, 4):
        rig.ask(enqueue(number))
    assert key not in rig.answers

    slept = rig.sleep()

    assert slept <= GATHER_NS
    assert seqs(rig.answers[key]) == [1, 2, 3]


def test_of_many_only_so_many_are_served_in_a_turn_and_the_others_at_once_after(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners_module, "LISTENERS_PER_TURN", 2)
    waiting = [listen(rig) for _ in range(5)]
    rig.advance(SECOND)

    rig.ask(enqueue(1))
    answered = [sum(key in rig.answers for key in waiting)]
    while not all(key in rig.answers for key in waiting):
        assert rig.sleep_ns() == 0
        rig.turn()
        answered.append(sum(key in rig.answers for key in waiting))

    assert answered == [2, 4, 5]


def test_of_many_questions_about_old_events_only_so_many_are_looked_into_in_a_turn(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.ask(*(enqueue(number) for number in range(1, 11)))
    monkeypatch.setattr(listeners_module, "EVENTS_PER_TURN", 15)
    rig.turn()
    looked_at: list[int] = []
    after = EventLog.after

    def counted(event_log: EventLog, seq: int) -> Iterator[Told]:
        for told in after(event_log, seq):
            looked_at.append(told.seq)
            yield told

    monkeypatch.setattr(EventLog, "after", counted)

    answers = rig.ask(*(GetEvents(0, filters=COMPLETED) for _ in range(6)))
    per_turn = [len(looked_at)]
    assert answers.count(EventsFound(10, [])) == 2
    while len(rig.replica.admission.event_waits):
        assert rig.sleep_ns() == 0
        rig.turn()
        per_turn.append(len(looked_at) - sum(per_turn))

    assert per_turn == [20, 20, 20]
    assert list(rig.answers.values())[-6:] == [EventsFound(10, [])] * 6


def test_whoever_comes_while_others_are_in_line_stands_behind_them(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.ask(*(enqueue(number) for number in range(1, 11)))
    monkeypatch.setattr(listeners_module, "EVENTS_PER_TURN", 5)
    rig.turn()
    rig.ask(*(GetEvents(0, filters=COMPLETED) for _ in range(3)))
    assert len(rig.replica.admission.event_waits) == 2

    assert rig.one(GetEvents(0, filters=COMPLETED)) is WAITING

    late = rig.last_key
    rig.turn()
    assert late not in rig.answers
    rig.turn()
    assert rig.answers[late] == EventsFound(10, [])


def test_nobody_looks_for_one_whose_deadline_has_passed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.ask(enqueue(1))
    monkeypatch.setattr(listeners_module, "EVENTS_PER_TURN", 0)
    rig.turn()
    assert rig.one(GetEvents(0), deadline_ms=1_000) is WAITING
    key = rig.last_key

    rig.advance(2 * SECOND)
    rig.turn()

    assert key not in rig.answers
    assert len(rig.replica.admission.event_waits) == 0


def test_where_many_listen_each_is_answered_less_often(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners_module, "GATHER_EACH_NS", GATHER_NS)
    waiting = [listen(rig) for _ in range(5)]
    rig.ask(enqueue(1))

    rig.sleep_through(4 * GATHER_NS)
    assert not any(key in rig.answers for key in waiting)
    rig.sleep_through(GATHER_NS)

    assert all(key in rig.answers for key in waiting)


def test_past_the_bound_a_listener_is_turned_away(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners_module, "LISTENERS_MAX", 1)
    listen(rig)

    refused = rig.one(GetEvents(0, wait_ms=1_000))

    assert isinstance(refused, Refused)
    assert (refused.code, refused.retry_after_ms > 0) == ("OVERLOADED", True)


def test_a_listener_that_leaves_is_forgotten(rig: Rig) -> None:
    key = listen(rig)

    rig.turn((GATEWAY, [Call(key[1], 0, b"")]))

    assert rig.answers[key] == EventsFound(0, [])
    assert len(rig.replica.admission.event_waits) == 0
    rig.ask(enqueue(1))  # and nobody is answered twice


def test_a_question_never_waits_beyond_its_deadline(rig: Rig) -> None:
    assert rig.one(GetEvents(0, wait_ms=60_000), deadline_ms=1_000) is WAITING
    key = rig.last_key

    rig.sleep_through(900 * MS)

    assert rig.answers[key] == EventsFound(0, [])


def test_after_a_restart_a_listener_goes_on_where_it_stopped(rig: Rig) -> None:
    rig.ask(enqueue(1, 2))
    rig.restart()
    rig.ask(enqueue(3))

    assert seqs(rig.one(GetEvents(1))) == [2, 3]


def test_a_cursor_that_is_too_old_is_answered_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corvo.state.event_log.EVENTS_KEPT", 1)
    for number in range(1, 5):
        rig.ask(enqueue(number))

    found = rig.one(GetEvents(1, wait_ms=20_000, filters=COMPLETED))

    assert (found.missed, found.upto, found.events) == (2, 4, [])


def test_a_follower_tells_the_same_story_without_its_leader(tmp_path: Path) -> None:
    group = Group(tmp_path)
    try:
        leader, follower = group.leader(), group.follower()
        number = follower.send(GetEvents(0, wait_ms=20_000))
        group.deliver()
        assert number not in follower.answers
        group.pass_time(100)

        for job in (1, 2):
            group.ask(leader, enqueue(job))
        group.until(lambda: number in follower.answers, "the first event")
        group.agree()

        heard = follower.answers[number]
        rest = group.ask(follower, GetEvents(heard.upto))
        assert heard.events + rest.events == group.ask(leader, GetEvents(0)).events
        assert len(heard.events + rest.events) == 2
        group.cut_off.add(follower.name)
        group.pass_time(3_000)
        assert group.ask(follower, GetEvents(0)).events == heard.events + rest.events, "although it has no leader"
    finally:
        group.close()
