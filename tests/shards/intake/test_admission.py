"""The door: what is admitted, parked or turned away, and who is next."""

from collections.abc import Iterator
from typing import Any

import pytest

from corvo.endpoint import Operation, Query
from corvo.model.errors import Refusal, Refused
from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.queries.cluster import GetStatus
from corvo.queries.feed import Pull
from corvo.queries.job import Await, GetJob
from corvo.wire import Call, decode_result, encode, encode_replies
from shards.intake import admission as door_module
from shards.intake.admission import AWAIT_RECHECK_NS, Admission
from shards.intake.presence import Presence
from shards.intake.waiters import PendingCall
from tests.support.builders import MS, NOW, SECOND, ack, enqueue, fetch
from tests.support.machine import Machine

PEER = b"gateway"
HUGE = 1 << 40


class AtTheDoor:
    """A door over a machine in memory. `batch` is what would go into the log; nothing is applied by itself."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.gone: set[bytes] = set()
        self.admission = Admission(
            self.machine.tables, Presence(lambda: NOW), is_there=lambda peer: peer not in self.gone
        )
        self.now = SECOND
        self.asked: dict[tuple[bytes, int], type[Operation] | type[Query]] = {}
        self.ids = 0

    def admit(self, ask: Operation | Query, peer: bytes = PEER, deadline_ms: int = 100_000) -> int:
        self.ids += 1
        self.asked[peer, self.ids] = type(ask)
        self.admission.admit(peer, Call(self.ids, deadline_ms, encode(ask)), self.now)
        return self.ids

    def recall(self, call_id: int, peer: bytes = PEER) -> None:
        self.admission.admit(peer, Call(call_id, 0, b""), self.now)

    def batch(self, bytes_max: int = HUGE, calls_max: int = 1_000) -> list[int]:
        batch = self.admission.take_batch(self.now, bytes_max, calls_max)
        self.admission.wake_with(batch)
        self.taken: list[PendingCall] = batch
        return [waiting.call_id for waiting in batch]

    def replies(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for peer, replies in self.admission.take_replies():
            for reply in replies:
                try:
                    found[reply.id] = decode_result(self.asked[peer, reply.id], reply)
                except Refusal as refusal:
                    found[reply.id] = refusal.to_refused()
        return found


@pytest.fixture
def at() -> Iterator[AtTheDoor]:
    yield AtTheDoor()


def an_await(*queues: str, wait_ms: int = 1_000, worker: str = "w1") -> Await:
    return Await(list(queues) or ["mail"], worker, "host", wait_ms)


def code(reply: Any) -> str:
    assert isinstance(reply, Refused), reply
    return reply.code


# Operations


def test_operations_go_to_the_log_in_the_order_of_their_coming(at: AtTheDoor) -> None:
    ids = [at.admit(enqueue(1)), at.admit(ack(1)), at.admit(enqueue(2))]

    assert at.batch() == ids
    assert at.replies() == {}


def test_a_batch_is_bounded_by_calls_and_bytes_and_the_rest_keeps_its_place(at: AtTheDoor) -> None:
    ids = [at.admit(enqueue(number)) for number in range(1, 6)]
    size = len(at.admission.operations[0].raw)

    assert at.batch(calls_max=2) == ids[:2]
    assert at.batch(bytes_max=size + 1) == ids[2:4]
    assert at.batch() == ids[4:]


def test_what_came_too_late_is_told_so_and_does_not_reach_the_log(at: AtTheDoor) -> None:
    late = at.admit(enqueue(1), deadline_ms=5)
    in_time = at.admit(enqueue(2), deadline_ms=6)

    at.now += 6 * MS

    assert at.batch() == [in_time]
    assert code(at.replies()[late]) == "DEADLINE_EXCEEDED"


def test_past_the_bound_a_call_is_told_to_come_back_and_when(at: AtTheDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "CALLS_WAITING_MAX", 2)
    ids = [at.admit(enqueue(number)) for number in (1, 2, 3)]

    replies = at.replies()

    assert list(replies) == ids[2:]
    assert code(replies[ids[2]]) == "OVERLOADED" and replies[ids[2]].retry_after_ms > 0
    assert at.admission.overloads == 1
    assert at.batch() == ids[:2]


def test_a_flood_of_one_queue_leaves_room_for_others(at: AtTheDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "CALLS_OF_QUEUE_MAX", 2)
    flood = [at.admit(enqueue(number)) for number in (1, 2, 3)]
    others = [at.admit(enqueue(4, queue="other")), at.admit(ack(1))]

    replies = at.replies()
    assert list(replies) == flood[2:] and code(replies[flood[2]]) == "OVERLOADED"
    assert "queue mail" in replies[flood[2]].message
    assert at.batch(calls_max=1) == flood[:1], "what has gone to the log makes room"
    again = at.admit(enqueue(3))
    assert at.batch() == [flood[1], *others, again]


def test_who_is_late_makes_room_too(at: AtTheDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "CALLS_OF_QUEUE_MAX", 2)
    at.admit(enqueue(1), deadline_ms=5)
    at.admit(enqueue(2))
    at.now += 6 * MS
    at.batch(calls_max=1)
    at.replies()

    at.admit(enqueue(3))
    at.admit(enqueue(4))
    assert at.replies() == {}


def test_the_hint_is_as_long_as_the_line(at: AtTheDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four calls a second are served: whoever is turned away behind eight comes back in two seconds."""
    monkeypatch.setattr(door_module, "CALLS_OF_QUEUE_MAX", 8)
    for number in range(1, 9):
        at.admit(enqueue(number))
        at.batch()
        at.now += SECOND // 4
    ids = [at.admit(enqueue(number)) for number in range(11, 20)]

    assert 1_500 <= at.replies()[ids[-1]].retry_after_ms <= 2_500


def test_an_enqueue_that_was_turned_away_wakes_nobody(at: AtTheDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "CALLS_WAITING_MAX", 0)
    at.admit(fetch("mail", wait_ms=100))
    at.admit(enqueue(1))

    assert at.batch() == [], "an empty fetch must not become an entry of the log"


A_FIELD_TOO_DEEP = b"\x93\x01\x90" + b"\x91" * 3_000 + b"\x90"  # behind those that are known, and skipped


@pytest.mark.parametrize("raw", [b"\xc0", b"\x92\x01", b"\x93\xcd\x03\xe7\x01\x02", b"\xff" * 40, A_FIELD_TOO_DEEP])
def test_an_unknown_ask_is_refused_by_itself(at: AtTheDoor, raw: bytes) -> None:
    at.asked[PEER, 7] = GetJob

    at.admission.admit(PEER, Call(7, 1_000, raw), at.now)
    other = at.admit(enqueue(1))

    assert code(at.replies()[7]) == "BAD_REQUEST"
    assert at.batch() == [other]


def test_queries_are_kept_apart_from_the_log(at: AtTheDoor) -> None:
    at.admit(GetJob("s00_job_1"))
    at.admit(GetStatus())

    assert at.batch() == []
    assert [type(waiting.ask) for waiting in at.admission.queries] == [GetJob, GetStatus]


def test_a_replica_that_leads_no_longer_tells_everybody_who_waits_for_its_leader(at: AtTheDoor) -> None:
    told = [at.admit(enqueue(1)), at.admit(GetJob("s00_job_1")), at.admit(fetch("video", wait_ms=100))]

    at.admission.refuse_all(Refused("NOT_LEADER", "elsewhere", 200))

    replies = at.replies()
    assert sorted(replies) == told and {code(reply) for reply in replies.values()} == {"NOT_LEADER"}
    assert at.batch() == []
    assert len(at.admission.waiters) == 0


# Fetches


def test_a_fetch_without_patience_on_an_empty_queue_is_answered_empty_at_once(at: AtTheDoor) -> None:
    call = at.admit(fetch("mail"))

    assert at.replies() == {call: []}
    assert at.batch() == []


def test_a_fetch_with_patience_is_parked_until_its_nanosecond(at: AtTheDoor) -> None:
    call = at.admit(fetch("mail", wait_ms=50))

    at.admission.turn(at.now + 50 * MS - 1)
    assert at.replies() == {} and at.batch() == []

    at.admission.turn(at.now + 50 * MS)
    assert at.replies() == {call: []}
    assert len(at.admission.waiters) == 0


def test_a_fetch_goes_to_the_log_where_a_job_is_pending(at: AtTheDoor) -> None:
    at.machine.apply(enqueue(1, queue="video"))

    call = at.admit(fetch("mail", "video", wait_ms=50))

    assert at.batch() == [call]


def test_a_repeated_fetch_goes_to_the_log_even_where_nothing_is_pending(at: AtTheDoor) -> None:
    call = at.admit(fetch("mail", is_repeated=True))

    assert at.batch() == [call]


def test_a_fetch_behind_its_enqueue_in_one_message_follows_it_into_the_log(at: AtTheDoor) -> None:
    ids = [at.admit(enqueue(1)), at.admit(fetch("mail"))]

    assert at.batch() == ids


def test_a_fetch_before_its_enqueue_in_one_message_is_woken_into_the_same_batch(at: AtTheDoor) -> None:
    waiting = at.admit(fetch("mail", wait_ms=50))
    new = at.admit(enqueue(1))

    assert at.batch() == [new, waiting]


def test_as_many_parked_fetches_join_a_batch_as_it_brings_jobs(at: AtTheDoor) -> None:
    waiting = [at.admit(fetch("mail", wait_ms=50, claim=claim)) for claim in range(1, 5)]
    elsewhere = at.admit(fetch("video", wait_ms=50))
    new = at.admit(enqueue(1, 2))

    assert at.batch() == [new, *waiting[:2]]
    assert len(at.admission.waiters) == 3
    at.recall(elsewhere)
    assert at.replies() == {elsewhere: []}


def test_a_fetch_that_came_with_the_job_does_not_overtake_the_one_that_waits(at: AtTheDoor) -> None:
    """Else a worker that waits starves beside clients that enqueue and fetch in one breath."""
    waiting = at.admit(fetch("mail", wait_ms=50, claim=1))
    new = at.admit(enqueue(1))
    newcomer = at.admit(fetch("mail", wait_ms=50, claim=2))

    batch = at.batch()

    assert batch[:2] == [new, waiting]
    assert newcomer not in batch or batch.index(newcomer) > batch.index(waiting)


def test_past_the_bound_of_parking_a_fetch_is_told_to_come_back(at: AtTheDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "CALLS_PARKED_MAX", 1)
    at.admit(fetch("mail", wait_ms=50))
    turned_away = [at.admit(fetch("mail", wait_ms=50, claim=2)), at.admit(an_await("mail"))]

    replies = at.replies()

    assert list(replies) == turned_away
    assert all(code(reply) == "OVERLOADED" and reply.retry_after_ms > 0 for reply in replies.values())
    assert at.admission.overloads == 2


# Recalls


def test_a_recalled_call_is_answered_empty_at_once(at: AtTheDoor) -> None:
    waiting, awaiting = at.admit(fetch("mail", wait_ms=50)), at.admit(an_await("mail"))

    at.recall(waiting)
    at.recall(awaiting)

    assert at.replies() == {waiting: [], awaiting: False}
    assert len(at.admission.waiters) == 0


def test_a_recall_of_what_is_not_parked_is_ignored(at: AtTheDoor) -> None:
    new = at.admit(enqueue(1))

    at.recall(new)
    at.recall(999)

    assert at.replies() == {}
    assert at.batch() == [new]


def test_a_recall_by_another_peer_changes_nothing(at: AtTheDoor) -> None:
    waiting = at.admit(fetch("mail", wait_ms=50))

    at.recall(waiting, peer=b"stranger")

    assert at.replies() == {} and len(at.admission.waiters) == 1


# Awaits


def test_an_await_is_told_at_once_of_a_job_that_is_there(at: AtTheDoor) -> None:
    at.machine.apply(enqueue(1))

    call = at.admit(an_await("video", "mail"))

    assert at.replies() == {call: True}


def test_an_await_is_told_only_of_jobs_that_are_there(at: AtTheDoor) -> None:
    call = at.admit(an_await("mail"))
    at.admit(enqueue(1))

    at.batch()
    assert at.replies() == {}, "the job is on its way to the log, no further"

    at.machine.apply(enqueue(1))
    at.admission.wake_pending(["mail"])
    assert at.replies() == {call: True}


def test_an_await_ends_false(at: AtTheDoor) -> None:
    call = at.admit(an_await("mail", wait_ms=10))

    at.admission.turn(at.now + 10 * MS)

    assert at.replies() == {call: False}


def test_awaits_keep_their_order_when_jobs_are_on_their_way(at: AtTheDoor) -> None:
    first, second = at.admit(an_await("mail")), at.admit(an_await("mail"))
    at.admit(enqueue(1, 2))
    at.batch()

    at.machine.apply(enqueue(1))  # one of the two was claimed meanwhile
    at.admission.wake_pending(["mail"])

    assert at.replies() == {first: True}
    at.recall(second)
    assert at.replies() == {second: False}


def test_a_job_that_was_told_but_not_claimed_is_offered_to_the_next_in_line_after_a_moment(at: AtTheDoor) -> None:
    calls = [at.admit(an_await("mail", wait_ms=10_000)) for _ in range(3)]
    at.admission.wake_again(at.now)
    at.machine.apply(enqueue(1))
    at.admission.wake_pending(["mail"])
    assert at.replies() == {calls[0]: True}

    at.admission.wake_again(at.now)
    assert at.replies() == {}, "the first one has not had the time to claim it"

    for call in calls[1:]:
        at.now += AWAIT_RECHECK_NS
        at.admission.wake_again(at.now)
        assert at.replies() == {call: True}

    at.now += AWAIT_RECHECK_NS
    at.admission.wake_again(at.now)
    assert not at.admission.told, "nobody is left to tell: the shard may sleep"


def test_a_job_that_was_told_and_claimed_is_offered_to_nobody_else(at: AtTheDoor) -> None:
    calls = [at.admit(an_await("mail", wait_ms=10_000)) for _ in range(2)]
    at.machine.apply(enqueue(1))
    at.admission.wake_pending(["mail"])
    assert at.replies() == {calls[0]: True}
    at.machine.apply(fetch("mail"))

    at.now += AWAIT_RECHECK_NS
    at.admission.wake_again(at.now)

    assert at.replies() == {} and not at.admission.told
    assert len(at.admission.waiters) == 1


def test_a_told_job_goes_to_a_parked_fetch_when_the_one_who_was_told_does_not_come(at: AtTheDoor) -> None:
    awaiting = at.admit(an_await("mail"))
    waiting = at.admit(fetch("mail", wait_ms=10_000))
    at.admission.wake_again(at.now)
    at.machine.apply(enqueue(1))
    at.admission.wake_pending(["mail"])
    assert at.replies() == {awaiting: True} and at.batch() == []

    at.now += AWAIT_RECHECK_NS
    at.admission.wake_again(at.now)

    assert at.batch() == [waiting]


# Pulls


def test_only_the_newest_pulls_are_kept(at: AtTheDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "PULLS_PARKED_MAX", 2)

    ids = [at.admit(Pull(0, 1_000, 10)) for _ in range(3)]

    assert [waiting.call_id for waiting in at.admission.pulls] == ids[1:]


# Out


def test_replies_to_one_peer_travel_in_one_message(at: AtTheDoor) -> None:
    for number in range(1, 4):
        at.admission.answer(b"a", number, True)
    at.admission.answer(b"b", 9, False)

    messages = at.admission.take_replies()

    assert [(peer, [reply.id for reply in replies]) for peer, replies in messages] == [
        (b"a", [1, 2, 3]),
        (b"b", [9]),
    ]
    assert at.admission.take_replies() == []


def test_replies_too_large_for_one_message_travel_in_several_and_in_order(at: AtTheDoor) -> None:
    """The gateway's socket refuses a frame beyond the limit and cuts the line; sent again, it would do so for ever."""
    for number in range(1, 101):
        at.admission.answer(b"a", number, b"x" * (MESSAGE_BYTES_MAX // 64))

    messages = at.admission.take_replies()

    assert max(len(encode_replies(replies)) for _, replies in messages) < MESSAGE_BYTES_MAX // 4
    assert len(messages) < 30
    assert [reply.id for _, replies in messages for reply in replies] == list(range(1, 101))


def test_a_waiting_worker_is_seen_and_a_served_one_is_left_to_the_log(at: AtTheDoor) -> None:
    presence = at.admission._presence
    at.admit(fetch("mail", worker="served-empty"))
    assert not presence.has_news()

    at.admit(fetch("mail", worker="parked", wait_ms=10))
    at.admit(an_await("mail", worker="awaiting"))

    assert [worker.id for worker in presence.take_news()] == ["parked", "awaiting"]


def test_a_job_is_not_given_to_an_asker_that_is_gone(at: AtTheDoor) -> None:
    at.gone.add(b"dead")
    waiting = [at.admit(fetch("mail", wait_ms=50, claim=n), peer=peer) for n, peer in enumerate([b"dead", PEER] * 2, 1)]
    new = at.admit(enqueue(1, 2))

    assert at.batch() == [new, waiting[1], waiting[3]]
    assert len(at.admission.waiters) == 0
    assert at.admission.take_gone() == [b"dead"] and at.admission.take_gone() == []
