"""The table of open calls: what is sent, what is sent again, and how each call ends. Time is handed in."""

from typing import Any

import pytest

from corvo import calls as module
from corvo.calls import CallTable, OpenCall
from corvo.endpoint import Operation, Query
from corvo.model.errors import Refusal, Refused
from corvo.model.lifecycle import State
from corvo.queries.job import Await, GetJob
from corvo.wire import Call, Reply, decode_ask, encode, reply_to
from tests.support.builders import enqueue, fetch

NO_LEADER = Refused("NOT_LEADER", "no leader", 50)
LOST = Refused("OUTCOME_UNKNOWN", "its leader was lost", 1_000)


class Caller:
    """A table, a clock, and a socket that keeps its messages."""

    def __init__(self, is_up: bool = True, **options: Any) -> None:
        self.table = CallTable(3, **options)
        self.now = 100.0
        self.messages: list[list[Call]] = []
        self.is_full = False
        if is_up:
            self.table.come_up()

    def ask(self, ask: Operation | Query, timeout_s: float = 10.0) -> OpenCall:
        call = OpenCall(ask, self.now, self.now + timeout_s)
        self.table.add(call)
        return call

    def _take(self, message: list[Call]) -> bool:
        if not self.is_full:
            self.messages.append(message)
        return not self.is_full

    def send(self) -> list[list[Call]]:
        """The messages that leave."""
        self.messages = []
        self.table.send(self.now, self._take)
        return self.messages

    def answer(self, call: OpenCall, result: Any) -> None:
        assert self.table.receive([reply_to(call.call_id, result)], self.now) == []


def asks(messages: list[list[Call]]) -> list[list[Any]]:
    return [[decode_ask(call.ask) for call in message] for message in messages]


def code(call: OpenCall) -> str:
    assert isinstance(call.outcome, Refusal), call.outcome
    return call.outcome.code


# Out and back


def test_all_that_waits_leaves_in_one_message_and_is_answered_by_id() -> None:
    caller = Caller()
    first, second = caller.ask(enqueue(1)), caller.ask(enqueue(2), timeout_s=0.5)
    [[one, two]] = caller.send()
    caller.answer(second, [State.PENDING])

    assert [decode_ask(one.ask), decode_ask(two.ask)] == [enqueue(1), enqueue(2)]
    assert (one.deadline_ms, two.deadline_ms) == (10_000, 500)
    assert caller.send() == [], "nothing is sent twice"
    assert second.outcome == [State.PENDING]
    assert not first.is_over()
    assert (len(caller.table), first.shard) == (1, 3)


@pytest.mark.parametrize(("name", "most"), [("CALLS_PER_MESSAGE_MAX", 2), ("BYTES_PER_MESSAGE", 2_300)])
def test_messages_are_bounded_and_keep_the_order(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(module, name, most)
    caller = Caller()
    wanted = [enqueue(number, payload=b"1" * 1_000) for number in range(1, 6)]
    for one in wanted:
        caller.ask(one)

    assert asks(caller.send()) == [wanted[:2], wanted[2:4], wanted[4:]]


def test_what_the_socket_does_not_take_waits_in_its_place() -> None:
    caller = Caller()
    call = caller.ask(enqueue(1))
    caller.is_full = True
    assert caller.send() == []
    assert caller.table.has_unsent and not call.is_sent
    caller.is_full = False
    caller.ask(enqueue(2))

    assert asks(caller.send()) == [[enqueue(1), enqueue(2)]]


def test_a_call_that_is_dropped_is_neither_sent_nor_ended_by_a_late_reply() -> None:
    caller = Caller()
    unsent, sent = caller.ask(enqueue(1)), caller.ask(enqueue(2))
    caller.table.drop(unsent)
    assert asks(caller.send()) == [[enqueue(2)]]
    caller.table.drop(sent)
    caller.answer(sent, [State.PENDING])

    assert not unsent.is_over() and not sent.is_over()
    assert len(caller.table) == 0


def test_a_result_that_cannot_be_read_fails_its_call_alone() -> None:
    caller = Caller()
    first, second = caller.ask(enqueue(1)), caller.ask(enqueue(2))
    replies = [Reply(first.call_id, False, b"\xc1"), reply_to(second.call_id, [State.PENDING])]
    [fault] = caller.table.receive(replies, caller.now)

    assert fault.startswith("Enqueue: ")
    assert (code(first), second.outcome) == ("INTERNAL_ERROR", [State.PENDING])


# Bounds


def test_too_many_calls_are_refused_until_one_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALLS_OPEN_MAX", 1)
    caller = Caller()
    first = caller.ask(enqueue(1))
    with pytest.raises(Refusal) as refused:
        caller.ask(enqueue(2))
    caller.answer(first, [State.PENDING])
    caller.ask(enqueue(3))

    assert (refused.value.code, refused.value.retry_after_ms > 0) == ("OVERLOADED", True)


def test_bytes_are_counted_through_repetition_and_every_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that drifts would end in refusing everything, or nothing."""
    caller = Caller()
    answered, repeated, dropped, late = (caller.ask(fetch(claim=n), timeout_s=n) for n in (1, 2, 3, 4))
    caller.send()
    caller.answer(answered, [])
    caller.answer(repeated, LOST)
    caller.table.retry()
    caller.table.go_down()
    caller.table.come_up()
    caller.table.drop(dropped)
    caller.now += 5
    caller.table.expire(caller.now)
    assert (len(caller.table), late.is_over(), repeated.is_over()) == (0, True, True)

    monkeypatch.setattr(module, "BYTES_OPEN_MAX", len(encode(enqueue(1))) * 2)
    caller.ask(enqueue(1))
    caller.ask(enqueue(1))
    with pytest.raises(Refusal):
        caller.ask(enqueue(1))


def test_one_call_is_taken_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_OPEN_MAX", 1)
    caller = Caller()
    caller.ask(enqueue(1))
    with pytest.raises(Refusal):
        caller.ask(enqueue(2))


# A connection that is lost


def test_what_was_sent_to_a_shard_that_was_lost_is_sent_again_as_a_repetition() -> None:
    caller = Caller()
    made, claimed = caller.ask(enqueue(1)), caller.ask(fetch(claim=7))
    caller.send()
    caller.table.go_down()
    caller.ask(fetch(claim=8))
    assert caller.send() == []
    caller.table.come_up()
    [again] = caller.send()

    assert asks([again]) == [[enqueue(1), fetch(claim=7, is_repeated=True), fetch(claim=8)]]
    assert [call.id for call in again[:2]] == [made.call_id, claimed.call_id]
    assert caller.table.repeats == 2


@pytest.mark.parametrize(
    ("is_up", "is_sent", "expected"),
    [
        (True, True, "DEADLINE_EXCEEDED"),
        (False, True, "OUTCOME_UNKNOWN"),
        (False, False, "SHARD_UNAVAILABLE"),
    ],
)
def test_a_deadline_says_what_is_known(is_up: bool, is_sent: bool, expected: str) -> None:
    caller = Caller(is_up=is_sent)
    call = caller.ask(enqueue(1), timeout_s=1)
    caller.send()
    if not is_up:
        caller.table.go_down()
    caller.table.expire(caller.now + 0.9)
    assert not call.is_over()
    caller.table.expire(caller.now + 1)

    assert code(call) == expected
    assert len(caller.table) == 0


# A shard without a leader


def test_a_call_without_a_leader_is_sent_again_until_an_election_should_be_over() -> None:
    caller = Caller()
    call = caller.ask(enqueue(1))
    tries = 0
    while not call.is_over():
        caller.send()
        caller.answer(call, NO_LEADER)
        caller.now += module.LEADERLESS_RETRY_S
        caller.table.retry()
        tries += 1
        assert tries < 1_000

    assert code(call) == "NOT_LEADER"
    assert module.LEADERLESS_ASKED_S < caller.now - 100.0 < module.LEADERLESS_ASKED_S + 0.2


def test_a_call_that_waits_for_a_retry_is_not_sent_before_it_nor_twice() -> None:
    caller = Caller()
    call = caller.ask(enqueue(1))
    caller.send()
    caller.answer(call, NO_LEADER)
    assert caller.table.has_leaderless
    assert caller.send() == []
    caller.table.go_down()
    caller.table.come_up()
    assert caller.send() == []
    caller.table.retry()

    assert asks(caller.send()) == [[enqueue(1)]]
    assert caller.send() == []


def test_once_a_leader_may_have_acted_the_outcome_is_unknown_in_the_end() -> None:
    caller = Caller()
    changed, asked = caller.ask(enqueue(1)), caller.ask(GetJob("j"))
    caller.send()
    for answer in (LOST, NO_LEADER):
        caller.answer(changed, answer)
        caller.answer(asked, answer)
        caller.now += 1
        caller.table.retry()
        caller.send()
    caller.answer(changed, NO_LEADER)
    caller.answer(asked, NO_LEADER)

    assert (code(changed), code(asked)) == ("OUTCOME_UNKNOWN", "NOT_LEADER"), "a question can be asked again"


@pytest.mark.parametrize("ask", [fetch(wait_ms=60_000), Await(["mail"], "w", "h", 60_000)])
def test_a_call_that_waited_long_with_a_leader_still_waits_for_the_next_one(ask: Operation | Query) -> None:
    caller = Caller()
    call = caller.ask(ask, timeout_s=70.0)
    caller.send()
    caller.now += 30
    caller.answer(call, NO_LEADER)

    assert not call.is_over()


def test_a_caller_that_does_not_wait_for_a_leader_is_told_at_once() -> None:
    caller = Caller(waits_for_leader=False)
    call = caller.ask(GetJob("j"))
    caller.send()
    caller.answer(call, NO_LEADER)

    assert code(call) == "NOT_LEADER"
    assert not caller.table.has_leaderless


# Recall


def test_a_recall_goes_to_the_shard_that_has_the_call() -> None:
    caller = Caller()
    call = caller.ask(fetch(wait_ms=9_000))
    caller.send()

    assert caller.table.recall(call) == Call(call.call_id, 0, b"")
    assert not call.is_over(), "the shard answers it: empty, or with a claim"


@pytest.mark.parametrize("case", ["unsent", "down", "leaderless"])
def test_a_recall_of_a_call_that_no_shard_has_ends_it_here(case: str) -> None:
    caller = Caller()
    call = caller.ask(fetch(wait_ms=9_000))
    if case != "unsent":
        caller.send()
    if case == "down":
        caller.table.go_down()
    if case == "leaderless":
        caller.answer(call, NO_LEADER)

    assert caller.table.recall(call) is None
    assert call.outcome == []
    caller.table.come_up()
    caller.table.retry()
    assert caller.send() == []


def test_closing_takes_every_open_call() -> None:
    caller = Caller()
    sent, leaderless = caller.ask(enqueue(1)), caller.ask(enqueue(2))
    caller.send()
    caller.answer(leaderless, NO_LEADER)
    unsent = caller.ask(enqueue(3))

    assert set(caller.table.take_all()) == {sent, leaderless, unsent}
    assert (len(caller.table), caller.table.has_unsent, caller.table.has_leaderless) == (0, False, False)
