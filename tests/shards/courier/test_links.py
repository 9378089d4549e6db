"""The courier's connections, over real sockets: what is sent arrives, what comes back is heard."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest
import zmq

from corvo import wire
from corvo.model.job_extras import Outcome
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.errands.member_ended import MemberEnded
from shards.courier.deliveries import PAUSE_NS, Courier
from shards.courier.links import CourierLinks
from tests.support.builders import NOW
from tests.support.machine import Machine
from tests.support.waiting import eventually

START = 5_000_000_000  # of the monotonic clock
WAIT_MS = 10_000  # for an event that comes within a few; a test that gets there has failed


class Town:
    """Shard 0 with its connections to shards 1 and 2, whose doors the test opens itself."""

    def __init__(self, folder: Path) -> None:
        self.context: zmq.Context[Any] = zmq.Context()
        self._addresses = {shard: f"ipc://{folder}/shard-{shard}.ipc" for shard in (1, 2)}
        self.doors: dict[int, zmq.Socket[bytes]] = {}
        self.machine = Machine(0, 3)
        self.courier = Courier(self.machine.tables.errands)
        self.poller = zmq.Poller()
        self.links = CourierLinks(self.context, self._addresses, self.poller)

    def open_door(self, shard: int) -> zmq.Socket[bytes]:
        admission: zmq.Socket[bytes] = self.context.socket(zmq.ROUTER)
        self.doors[shard] = admission
        admission.bind(self._addresses[shard])
        return admission

    def close_door(self, shard: int) -> None:
        self.doors.pop(shard).close(0)

    def deliver(self, *targets: int) -> None:
        """Until the courier waits for the answers of all these shards. It starts again after a pause until it is
        connected."""

        def is_under_way() -> bool:
            self.links.go(self.courier, monotonic_ns())
            return all(map(self.courier.awaits, targets))

        eventually(is_under_way)

    def give(self, target: int) -> None:
        tables = self.machine.tables
        tables.begin(tables.applied.index + 1, 1, NOW)
        tables.errands.send(target, MemberEnded("s01_batch_" + "0" * 26, Outcome.COMPLETED))
        tables.seal()

    def confirm(self) -> None:
        tables = self.machine.tables
        tables.begin(tables.applied.index + 1, 1, NOW)
        for operation in self.courier.confirmations():
            operation.apply(tables)
        tables.seal()

    def listen(self) -> None:
        """Wait for an answer, or for the end of a connection, then let the courier hear it."""
        assert self.poller.poll(WAIT_MS), "no answer came"
        self.links.come_back(self.courier, monotonic_ns())

    def close(self) -> None:
        self.links.close()
        for admission in self.doors.values():
            admission.close(0)
        self.context.term()


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    town = Town(tmp_path)
    yield town
    town.close()


def heard_at(admission: zmq.Socket[bytes]) -> tuple[bytes, wire.Call, Deliver]:
    assert admission.poll(WAIT_MS), "nothing arrived"
    peer, message = admission.recv_multipart()
    [call] = wire.decode_calls(message)
    ask = wire.decode_ask(call.ask)
    assert isinstance(ask, Deliver)
    return peer, call, ask


def test_an_errand_arrives_and_its_answer_is_heard(town: Town) -> None:
    admission = town.open_door(1)
    town.give(1)

    town.deliver(1)
    peer, call, ask = heard_at(admission)
    admission.send_multipart([peer, wire.encode_replies([wire.reply_to(call.id, 1)])])
    town.listen()

    assert (ask.source, ask.first) == (0, 1)
    assert town.courier.confirmations() == [Confirm(1, 1)]


def test_every_shard_hears_only_what_is_for_it(town: Town) -> None:
    doors = {shard: town.open_door(shard) for shard in (1, 2)}
    for _ in range(2):
        town.give(2)
    town.give(1)

    town.deliver(1, 2)

    assert {shard: len(heard_at(admission)[2].errands) for shard, admission in doors.items()} == {1: 1, 2: 2}


def test_a_shard_that_is_away_is_turned_back_from_and_gets_it_when_it_is_there(town: Town) -> None:
    town.give(1)
    town.links.go(town.courier, START)
    assert not town.courier.awaits(1)
    assert town.courier.next_ns() == START + PAUSE_NS

    admission = town.open_door(1)
    town.deliver(1)

    assert heard_at(admission)[2].first == 1


def test_a_shard_that_is_lost_with_an_errand_gets_it_again_without_waiting_for_its_answer(town: Town) -> None:
    admission = town.open_door(1)
    town.give(1)
    town.deliver(1)
    heard_at(admission)

    town.close_door(1)
    town.listen()
    assert not town.courier.awaits(1)
    assert town.poller.sockets == []
    admission = town.open_door(1)
    town.deliver(1)

    assert heard_at(admission)[2].first == 1


def test_a_connection_that_was_lost_while_there_were_no_errands_is_used_again(town: Town) -> None:
    admission = town.open_door(1)
    town.give(1)
    town.deliver(1)
    peer, call, _ = heard_at(admission)
    admission.send_multipart([peer, wire.encode_replies([wire.reply_to(call.id, 1)])])
    town.listen()
    town.confirm()

    town.close_door(1)
    admission = town.open_door(1)
    town.give(1)

    def has_arrived() -> bool:
        """The loss of the connection may be noticed only after the errand was sent into it."""
        town.links.come_back(town.courier, monotonic_ns())
        town.links.go(town.courier, monotonic_ns())
        return bool(admission.poll(1))

    eventually(has_arrived)
    assert heard_at(admission)[2].first == 2


@pytest.mark.parametrize("noise", [b"", b"\xc1", b"no answer at all"])
def test_an_answer_that_nobody_understands_is_passed_over(town: Town, noise: bytes) -> None:
    admission = town.open_door(1)
    town.give(1)
    town.deliver(1)
    peer, call, _ = heard_at(admission)

    admission.send_multipart([peer, noise])
    town.listen()
    assert town.courier.confirmations() == []
    admission.send_multipart([peer, wire.encode_replies([wire.reply_to(call.id, 1)])])
    town.listen()

    assert town.courier.confirmations() == [Confirm(1, 1)]


def test_a_result_of_the_wrong_type_is_a_refusal_and_followed_by_a_pause(town: Town) -> None:
    admission = town.open_door(1)
    town.give(1)
    town.deliver(1)
    peer, call, _ = heard_at(admission)

    admission.send_multipart([peer, wire.encode_replies([wire.reply_to(call.id, "no number")])])
    town.listen()

    assert town.courier.confirmations() == []
    assert not town.courier.awaits(1)


def test_only_a_connection_on_which_an_answer_is_awaited_is_watched(town: Town) -> None:
    admission = town.open_door(1)
    assert town.poller.sockets == []
    town.give(1)

    town.deliver(1)
    peer, call, _ = heard_at(admission)
    assert len(town.poller.sockets) == 2, "the socket, and the events of the connection"
    answer = wire.encode_replies([wire.reply_to(call.id, 1)])
    admission.send_multipart([peer, answer])
    town.listen()

    assert town.poller.sockets == []
    admission.send_multipart([peer, answer])  # once more: it wakes nobody
    town.links.come_back(town.courier, monotonic_ns())
    assert town.poller.poll(0) == []


def test_a_courier_that_rests_leaves_no_connection_watched(town: Town) -> None:
    town.open_door(1)
    town.give(1)
    town.deliver(1)

    town.courier.rest()
    town.links.come_back(town.courier, monotonic_ns())

    assert town.poller.sockets == []


def test_an_answer_to_a_delivery_of_before_the_rest_is_not_heard(town: Town) -> None:
    admission = town.open_door(1)
    town.give(1)
    town.deliver(1)
    peer, early, _ = heard_at(admission)
    town.courier.rest()
    town.links.come_back(town.courier, monotonic_ns())

    town.deliver(1)
    _, late, _ = heard_at(admission)
    admission.send_multipart([peer, wire.encode_replies([wire.reply_to(early.id, 1)])])
    town.listen()
    assert town.courier.confirmations() == []
    admission.send_multipart([peer, wire.encode_replies([wire.reply_to(late.id, 1)])])
    town.listen()

    assert town.courier.confirmations() == [Confirm(1, 1)]
