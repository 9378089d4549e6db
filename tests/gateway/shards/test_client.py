"""Links to shards: what leaves, what comes back, and what happens when the other end does not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from corvo import calls as calls_module
from corvo import wire
from corvo.model.errors import Refusal, Refused
from corvo.model.lifecycle import State
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.queries.cluster import GetStatus
from corvo.queries.job import GetJob
from corvo.wire import Call, Reply
from gateway.shards import client
from gateway.shards.client import ShardCall, ShardLink, Shards
from gateway.shards.moved_jobs import ask_all
from tests.gateway.fake_peer import Peer, run, short_dir, until
from tests.gateway.fake_shards import a_status
from tests.support.builders import enqueue, fetch

CLAIMED = Claimed("j", "mail", b"{}", 1, 3, 60_000, 1, b"", b"")


class Line:
    """Shards, and the peers that stand for them."""

    def __init__(self, path: str, count: int, timeout_s: float) -> None:
        self.addresses = [f"ipc://{path}/{shard}.ipc" for shard in range(count)]
        self.shards = Shards(self.addresses, timeout_s)
        self.peers: list[Peer] = []

    @property
    def link(self) -> ShardLink:
        return self.shards.links[0]

    @property
    def peer(self) -> Peer:
        return self.peers[0]

    async def connect(self) -> None:
        self.peers = [Peer(address) for address in self.addresses]
        await until(lambda: all(link.table.is_up for link in self.shards.links))

    async def lose(self) -> None:
        self.peers.pop(0).die()
        await until(lambda: not self.link.table.is_up)


@asynccontextmanager
async def a_line(count: int = 1, timeout_s: float = 30.0, is_connected: bool = True) -> AsyncIterator[Line]:
    with short_dir() as path:
        line = Line(path, count, timeout_s)
        if is_connected:
            await line.connect()
        try:
            yield line
        finally:
            line.shards.close()
            for peer in line.peers:
                peer.die()


def asks(calls: list[Call]) -> list[Any]:
    return [wire.decode_ask(call.ask) for call in calls]


async def refusal_of(future: Any) -> Refusal:
    with pytest.raises(Refusal) as refused:
        await future
    return refused.value


@pytest.fixture
def sweeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SWEEP_S", 0.01)


# Out and back


def test_all_that_is_asked_in_one_tick_leaves_as_one_message() -> None:
    async def test() -> None:
        async with a_line() as line:
            futures = [line.shards.ask(0, enqueue(number)) for number in range(1, 6)]
            calls = await line.peer.take()
            line.peer.answer(*((call.id, [State.PENDING]) for call in reversed(calls)))

            assert asks(calls) == [enqueue(number) for number in range(1, 6)]
            assert await asyncio.gather(*futures) == [[State.PENDING]] * 5
            assert len({call.id for call in calls}) == 5
            assert not line.peer.look()
            assert len(line.link.table) == 0

    run(test())


def test_what_is_asked_later_leaves_later_with_other_ids() -> None:
    async def test() -> None:
        async with a_line() as line:
            line.shards.ask(0, enqueue(1))
            first = await line.peer.take()
            line.shards.ask(0, enqueue(2))
            second = await line.peer.take()

            assert (asks(first), asks(second)) == ([enqueue(1)], [enqueue(2)])
            assert first[0].id != second[0].id

    run(test())


def test_the_deadline_travels_with_the_call() -> None:
    async def test() -> None:
        async with a_line(timeout_s=3) as line:
            line.shards.ask(0, enqueue(1))
            line.shards.ask(0, fetch(wait_ms=20_000), 20_000)
            plain, parked = await line.peer.take()

            assert 2_000 < plain.deadline_ms <= 3_000
            assert 22_000 < parked.deadline_ms <= 23_000

    run(test())


def test_a_message_is_cut_where_it_would_grow_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "CALLS_PER_MESSAGE_MAX", 3)

    async def test() -> None:
        async with a_line() as line:
            for number in range(1, 9):
                line.shards.ask(0, enqueue(number))
            messages = [await line.peer.take() for _ in range(3)]

            assert [len(calls) for calls in messages] == [3, 3, 2]
            assert [ask for calls in messages for ask in asks(calls)] == [enqueue(number) for number in range(1, 9)]

    run(test())


def test_a_message_is_cut_where_it_would_grow_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "BYTES_PER_MESSAGE", 1_000)

    async def test() -> None:
        async with a_line() as line:
            for number in range(1, 4):
                line.shards.ask(0, enqueue(number, payload=b"1" * 1_000))
            messages = [await line.peer.take() for _ in range(3)]

            assert [len(calls) for calls in messages] == [1, 1, 1]

    run(test())


def test_a_refusal_of_the_shard_is_raised() -> None:
    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, GetJob("j"))
            (call,) = await line.peer.take()
            line.peer.answer((call.id, Refused("JOB_NOT_FOUND", "no job", 5)))
            refusal = await refusal_of(future)

            assert (refusal.code, refusal.message, refusal.retry_after_ms) == ("JOB_NOT_FOUND", "no job", 5)

    run(test())


def test_what_was_asked_before_the_shard_was_there_is_sent_when_it_comes() -> None:
    async def test() -> None:
        async with a_line(is_connected=False) as line:
            future = line.shards.ask(0, enqueue(1))
            repeated = line.shards.ask(0, fetch())
            await asyncio.sleep(0.01)
            await line.connect()
            calls = await line.peer.take()
            line.peer.answer((calls[0].id, [State.PENDING]), (calls[1].id, []))

            assert asks(calls) == [enqueue(1), fetch()], "never sent before, so no repetition"
            assert (await future, await repeated) == ([State.PENDING], [])
            assert line.link.table.repeats == 0

    run(test())


# A shard that does not answer


@pytest.mark.usefixtures("sweeping")
def test_a_shard_that_is_not_there_is_unavailable_at_the_deadline() -> None:
    async def test() -> None:
        async with a_line(timeout_s=0.03, is_connected=False) as line:
            refusal = await refusal_of(line.shards.ask(0, enqueue(1)))

            assert (refusal.code, refusal.status, refusal.retry_after_ms) == ("SHARD_UNAVAILABLE", 503, 1_000)
            assert len(line.link.table) == 0

    run(test())


@pytest.mark.usefixtures("sweeping")
def test_a_shard_that_is_lost_with_the_call_leaves_the_outcome_unknown() -> None:
    async def test() -> None:
        async with a_line(timeout_s=0.3) as line:
            future = line.shards.ask(0, enqueue(1))
            await line.peer.take()
            await line.lose()
            refusal = await refusal_of(future)

            assert (refusal.code, refusal.status) == ("OUTCOME_UNKNOWN", 503)

    run(test())


@pytest.mark.usefixtures("sweeping")
def test_a_shard_that_is_silent_is_given_up_at_the_deadline() -> None:
    async def test() -> None:
        async with a_line(timeout_s=0.03) as line:
            future = line.shards.ask(0, enqueue(1))
            (call,) = await line.peer.take()
            refusal = await refusal_of(future)
            line.peer.answer((call.id, [State.PENDING]))  # too late: nobody is there to hear it
            again = line.shards.ask(0, GetStatus())
            (call,) = await line.peer.take()
            line.peer.answer((call.id, a_status()))

            assert (refusal.code, refusal.status) == ("DEADLINE_EXCEEDED", 504)
            assert (await again).node_id == "node-1"

    run(test())


def test_what_a_dead_shard_was_asked_is_asked_of_its_successor_as_a_repetition() -> None:
    async def test() -> None:
        async with a_line() as line:
            made = line.shards.ask(0, enqueue(1))
            fetched = line.shards.ask(0, fetch(claim=7, wait_ms=9_000), 9_000).future
            before = await line.peer.take()
            await line.lose()
            new = line.shards.ask(0, fetch(claim=8))
            await line.connect()
            after = await line.peer.take()
            line.peer.answer((after[0].id, [State.PENDING]), (after[1].id, [CLAIMED]), (after[2].id, []))

            assert asks(before) == [enqueue(1), fetch(claim=7, wait_ms=9_000)]
            assert asks(after) == [enqueue(1), fetch(claim=7, wait_ms=9_000, is_repeated=True), fetch(claim=8)]
            assert [call.id for call in after[:2]] == [call.id for call in before]
            assert (await made, await fetched, await new) == ([State.PENDING], [CLAIMED], [])
            assert line.link.table.repeats == 2

    run(test())


def test_what_is_answered_is_not_asked_again() -> None:
    async def test() -> None:
        async with a_line() as line:
            answered, open_ = line.shards.ask(0, enqueue(1)), line.shards.ask(0, enqueue(2))
            given_up = line.shards.ask(0, enqueue(3))
            calls = await line.peer.take()
            line.peer.answer((calls[0].id, [State.PENDING]))
            await answered
            given_up.future.cancel()
            await line.lose()
            await line.connect()
            again = await line.peer.take()
            line.peer.answer((again[0].id, [State.PENDING]))

            assert asks(again) == [enqueue(2)]
            assert await open_ == [State.PENDING]

    run(test())


def test_a_shard_can_die_many_times() -> None:
    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, fetch(claim=7))
            for _ in range(3):
                (call,) = await line.peer.take()
                await line.lose()
                await line.connect()
            (call,) = await line.peer.take()
            line.peer.answer((call.id, [CLAIMED]))

            assert await future == [CLAIMED]

    run(test())


def test_a_message_over_the_size_limit_costs_the_connection_and_not_the_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """libzmq alone would never connect again."""
    monkeypatch.setattr("corvo.links.shard_socket.MESSAGE_BYTES_MAX", 20_000)

    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, enqueue(1))
            await line.peer.take()
            line.peer.send(b"x" * 30_000)
            (call,) = await line.peer.take()
            line.peer.answer((call.id, [State.PENDING]))

            assert await future == [State.PENDING]
            assert line.link.table.repeats == 1

    run(test())


# Bounds


def test_past_the_bound_a_caller_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "CALLS_OPEN_MAX", 3)

    async def test() -> None:
        async with a_line() as line:
            futures = [line.shards.ask(0, enqueue(number)) for number in (1, 2, 3)]
            refused = await refusal_of(line.shards.ask(0, enqueue(4)))
            calls = await line.peer.take()
            line.peer.answer((calls[0].id, [State.PENDING]))
            await futures[0]
            line.shards.ask(0, enqueue(5))

            assert (refused.status, refused.code) == (429, "OVERLOADED")
            assert refused.retry_after_ms > 0
            assert asks(calls) == [enqueue(number) for number in (1, 2, 3)]
            assert asks(await line.peer.take()) == [enqueue(5)]

    run(test())


# Recall


def test_recalling_what_the_shard_has_tells_it_so() -> None:
    async def test() -> None:
        async with a_line() as line:
            pending = line.shards.ask(0, fetch(wait_ms=9_000), 9_000)
            (call,) = await line.peer.take()
            line.shards.recall(pending)
            (recall,) = await line.peer.take()
            line.peer.answer((call.id, [CLAIMED]))  # a claim was on its way

            assert recall == Call(call.id, 0, b"")
            assert await pending.future == [CLAIMED]

    run(test())


@pytest.mark.parametrize("is_connected", [True, False])
def test_recalling_what_was_never_sent_ends_it_at_once(is_connected: bool) -> None:
    async def test() -> None:
        async with a_line(is_connected=is_connected) as line:
            pending = line.shards.ask(0, fetch(wait_ms=9_000), 9_000)
            line.shards.recall(pending)

            assert await pending.future == []
            assert len(line.link.table) == 0
            if not is_connected:
                await line.connect()
            line.shards.ask(0, enqueue(1))
            assert asks(await line.peer.take()) == [enqueue(1)]

    run(test())


def test_what_was_never_sent_and_is_awaited_by_nobody_is_forgotten() -> None:
    async def test() -> None:
        async with a_line(is_connected=False) as line:
            pending = line.shards.ask(0, GetJob("j"), 20_000)
            pending.future.cancel()

            line.shards.recall(pending)

            assert len(line.link.table) == 0

    run(test())


def test_recalling_from_a_shard_that_is_gone_ends_it_at_once() -> None:
    async def test() -> None:
        async with a_line() as line:
            pending = line.shards.ask(0, fetch(wait_ms=9_000), 9_000)
            await line.peer.take()
            await line.lose()
            line.shards.recall(pending)

            assert await pending.future == []

    run(test())


# Nonsense


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda peer, call: peer.send(b""),
        lambda peer, call: peer.send(b"\xc1"),
        lambda peer, call: peer.send(b"\x91" * 100_000),
        lambda peer, call: peer.send(wire.encode([99, []])),
        lambda peer, call: peer.send(wire.encode([1, [[call.id]]])),
        lambda peer, call: peer.send(wire.encode({"a": 1})),
        lambda peer, call: peer.answer((call.id + 1_000, [State.PENDING])),
        lambda peer, call: peer.answer_raw(Reply(call.id + 1, False, b"\xc1")),
    ],
)
def test_nonsense_is_ignored_and_the_answer_after_it_heard(nonsense: Callable[[Peer, Call], None]) -> None:
    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, enqueue(1))
            (call,) = await line.peer.take()
            nonsense(line.peer, call)
            line.peer.answer((call.id, [State.PENDING]))

            assert await future == [State.PENDING]

    run(test())


@pytest.mark.parametrize(
    "reply",
    [(False, b"\xc1"), (False, b""), (False, wire.encode("text")), (True, b"\xc1"), (True, wire.encode([1, 2]))],
)
def test_a_result_that_cannot_be_read_fails_its_caller_and_nobody_else(reply: tuple[bool, bytes]) -> None:
    async def test() -> None:
        async with a_line() as line:
            first, second = line.shards.ask(0, enqueue(1)), line.shards.ask(0, enqueue(2))
            calls = await line.peer.take()
            line.peer.answer_raw(Reply(calls[0].id, *reply), wire.reply_to(calls[1].id, [State.PENDING]))

            assert await second == [State.PENDING]
            assert (await refusal_of(first)).code == "INTERNAL_ERROR"

    run(test())


def test_an_answer_that_comes_twice_is_heard_once() -> None:
    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, enqueue(1))
            (call,) = await line.peer.take()
            line.peer.answer((call.id, [State.PENDING]), (call.id, [State.SCHEDULED]))
            line.peer.answer((call.id, [State.SCHEDULED]))

            assert await future == [State.PENDING]

    run(test())


def test_an_answer_that_nobody_awaits_any_more_disturbs_nobody() -> None:
    async def test() -> None:
        async with a_line() as line:
            given_up, future = line.shards.ask(0, enqueue(1)), line.shards.ask(0, enqueue(2))
            calls = await line.peer.take()
            given_up.future.cancel()
            line.peer.answer(*((call.id, [State.PENDING]) for call in calls))

            assert await future == [State.PENDING]
            assert len(line.link.table) == 0

    run(test())


# The end


def test_closing_cancels_what_is_open_and_says_nothing_more() -> None:
    async def test() -> None:
        async with a_line() as line:
            sent = line.shards.ask(0, enqueue(1))
            await line.peer.take()
            unsent = line.shards.ask(0, enqueue(2))

        await asyncio.sleep(0)
        assert sent.future.cancelled()
        assert unsent.future.cancelled()

    run(test())


def test_closing_without_ever_having_met_the_shard_does_not_hang() -> None:
    async def test() -> None:
        async with a_line(count=4, is_connected=False) as line:
            future = line.shards.ask(3, enqueue(1))

        assert future.future.cancelled()

    run(test())


# All shards together


async def answer_one(peer: Peer, result: Any) -> Call:
    (call,) = await peer.take()
    peer.answer((call.id, result))
    return call


def test_results_come_in_the_order_of_the_calls_whoever_answers_first() -> None:
    async def test() -> None:
        async with a_line(count=3) as line:
            context = asyncio.ensure_future(ask_all(line.shards, [(2, enqueue(1)), (0, enqueue(2)), (1, enqueue(3))]))
            for shard in (0, 1, 2):
                await answer_one(line.peers[shard], [State(shard)])

            assert await context == [[State(2)], [State(0)], [State(1)]]

    run(test())


def test_one_refusal_is_raised_after_every_call_has_ended() -> None:
    async def test() -> None:
        async with a_line(count=2) as line:
            context = asyncio.ensure_future(ask_all(line.shards, [(0, enqueue(1)), (1, enqueue(2))]))
            await answer_one(line.peers[0], Refused("OVERLOADED", "later", 100))
            await asyncio.sleep(0.02)
            was_waiting = not context.done()
            await answer_one(line.peers[1], [State.PENDING])

            assert was_waiting
            assert (await refusal_of(context)).code == "OVERLOADED"

    run(test())


def test_a_shard_that_is_full_refuses_only_after_the_others_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "CALLS_OPEN_MAX", 1)

    async def test() -> None:
        async with a_line(count=2) as line:
            line.shards.ask(1, enqueue(9))
            context = asyncio.ensure_future(ask_all(line.shards, [(0, enqueue(1)), (1, enqueue(2))]))
            await asyncio.sleep(0.02)
            was_waiting = not context.done()
            await answer_one(line.peers[0], [State.PENDING])

            assert was_waiting
            assert (await refusal_of(context)).code == "OVERLOADED"

    run(test())


def test_shards_are_counted() -> None:
    async def test() -> None:
        async with a_line(count=5, is_connected=False) as line:
            assert len(line.shards) == 5
            assert isinstance(line.shards.ask(0, fetch(), 0), ShardCall)
            assert isinstance(fetch(), Fetch)

    run(test())


# A shard without a leader


LEADERLESS = Refused("NOT_LEADER", "no leader", 50)
LOST = Refused("OUTCOME_UNKNOWN", "its leader was lost", 1_000)


def test_a_call_without_a_leader_is_asked_again_until_there_is_one() -> None:
    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, enqueue(1))
            for _ in range(3):
                await answer_one(line.peer, LEADERLESS)
            await answer_one(line.peer, [State.PENDING])

            assert await future == [State.PENDING]
            assert (len(line.link.table), line.link.table.repeats) == (0, 3)

    run(test())


def test_without_a_leader_in_time_a_caller_is_told_that_nothing_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "LEADERLESS_ASKED_S", 0.0)
    monkeypatch.setattr(calls_module, "LEADERLESS_S", -1.0)

    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, enqueue(1))
            await answer_one(line.peer, LEADERLESS)

            assert (await refusal_of(future)).code == "NOT_LEADER"
            assert len(line.link.table) == 0

    run(test())


def test_once_a_leader_may_have_acted_the_last_word_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, enqueue(1))
            await answer_one(line.peer, LOST)
            await until(lambda: line.link.table.has_leaderless)
            monkeypatch.setattr(calls_module, "LEADERLESS_ASKED_S", 0.0)
            monkeypatch.setattr(calls_module, "LEADERLESS_S", -1.0)
            await answer_one(line.peer, LEADERLESS)

            assert (await refusal_of(future)).code == "OUTCOME_UNKNOWN"

    run(test())


def test_a_question_that_was_lost_can_simply_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "LEADERLESS_ASKED_S", 0.0)
    monkeypatch.setattr(calls_module, "LEADERLESS_S", -1.0)

    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, GetJob("s00_job_1"))
            await answer_one(line.peer, LOST)

            assert (await refusal_of(future)).code == "NOT_LEADER"

    run(test())


def test_a_fetch_is_marked_as_repeated_only_if_a_leader_may_have_acted_on_it() -> None:
    async def test() -> None:
        async with a_line() as line:
            future = line.shards.ask(0, fetch("mail"))
            seen = []
            for answer in (LEADERLESS, LOST, [CLAIMED]):
                (call,) = await line.peer.take()
                seen.append(asks([call])[0].is_repeated)
                line.peer.answer((call.id, answer))

            assert await future == [CLAIMED]
            assert seen == [False, False, True]

    run(test())


def test_a_call_that_waits_to_be_asked_again_can_be_recalled() -> None:
    async def test() -> None:
        async with a_line() as line:
            pending = line.shards.ask(0, fetch("mail", wait_ms=30_000), 30_000)
            await answer_one(line.peer, LEADERLESS)
            await until(lambda: line.link.table.has_leaderless)
            line.shards.recall(pending)

            assert await pending.future == []
            await asyncio.sleep(calls_module.LEADERLESS_RETRY_S * 2)  # longer than it would take to be asked again
            assert not line.peer.look()

    run(test())
