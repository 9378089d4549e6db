"""The roads between shards, over real sockets: what is sent arrives, what comes back is heard, what is lost is not."""

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
from shards.courier.deliveries import Courier
from shards.courier.sockets import CourierSockets
from tests.support.builders import NOW
from tests.support.machine import Machine

WAIT_MS = 10_000  # for an event that comes within a few; a test that gets there has failed


class Town:
    """Shard 0 with its roads to shards 1 and 2, whose doors the test opens itself."""

    def __init__(self, folder: Path) -> None:
        self.context: zmq.Context[Any] = zmq.Context()
        self._addresses = {shard: f"ipc://{folder}/shard-{shard}.ipc" for shard in (1, 2)}
        self.doors: dict[int, zmq.Socket[bytes]] = {}
        self.machine = Machine(0, 3)
        self.courier = Courier(self.machine.tables.errands)
        self.poller = zmq.Poller()
        self.courier_sockets = CourierSockets(self.context, self._addresses, self.poller)

    def open_door(self, shard: int) -> zmq.Socket[bytes]:
        """And wait until the road is connected to it: what is sent before that is carried again later."""
        road = self.courier_sockets.sockets()[shard - 1]
        monitor = road.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        admission: zmq.Socket[bytes] = self.context.socket(zmq.ROUTER)
        self.doors[shard] = admission
        admission.bind(self._addresses[shard])
        assert monitor.poll(WAIT_MS), "the road was never connected"
        road.disable_monitor()
        monitor.close(0)
        return admission

    def give(self, target: int) -> None:
        tables = self.machine.tables
        tables.begin(tables.applied.index + 1, 1, NOW)
        tables.errands.send(target, MemberEnded("s01_batch_" + "0" * 26, Outcome.COMPLETED))
        tables.seal()

    def listen(self) -> None:
        """Wait for an answer, then let the courier hear it."""
        assert self.poller.poll(WAIT_MS), "no answer came"
        self.courier_sockets.come_back(self.courier, monotonic_ns())

    def close(self) -> None:
        self.courier_sockets.close()
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

    town.courier_sockets.go(town.courier, monotonic_ns())
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

    town.courier_sockets.go(town.courier, monotonic_ns())

    assert {shard: len(heard_at(admission)[2].errands) for shard, admission in doors.items()} == {1: 1, 2: 2}


def test_a_shard_that_is_away_is_turned_back_from_and_gets_it_when_it_is_there(town: Town) -> None:
    town.give(1)
    town.courier_sockets.go(town.courier, monotonic_ns())
    pause_ends = town.courier.next_ns()
    assert pause_ends is not None

    admission = town.open_door(1)
    for target, call in town.courier.set_out(pause_ends):
        town.courier_sockets.sockets()[target - 1].send(wire.encode_calls([call]))

    assert heard_at(admission)[2].first == 1


@pytest.mark.parametrize("noise", [b"", b"\xc1", b"no answer at all"])
def test_an_answer_that_nobody_understands_is_passed_over(town: Town, noise: bytes) -> None:
    admission = town.open_door(1)
    town.give(1)
    town.courier_sockets.go(town.courier, monotonic_ns())
    peer, call, _ = heard_at(admission)

    admission.send_multipart([peer, noise])
    town.listen()
    assert town.courier.confirmations() == []
    admission.send_multipart([peer, wire.encode_replies([wire.reply_to(call.id, 1)])])
    town.listen()

    assert town.courier.confirmations() == [Confirm(1, 1)]


def test_only_a_road_on_which_an_answer_is_awaited_is_watched(town: Town) -> None:
    admission = town.open_door(1)
    assert town.poller.sockets == []
    town.give(1)

    town.courier_sockets.go(town.courier, monotonic_ns())
    peer, call, _ = heard_at(admission)
    assert [socket for socket, _ in town.poller.sockets] == town.courier_sockets.sockets()[:1]
    answer = wire.encode_replies([wire.reply_to(call.id, 1)])
    admission.send_multipart([peer, answer])
    town.listen()

    assert town.poller.sockets == []
    admission.send_multipart([peer, answer])  # once more: it wakes nobody
    town.courier_sockets.come_back(town.courier, monotonic_ns())
    assert town.poller.poll(0) == []


def test_a_courier_that_rests_leaves_no_road_watched(town: Town) -> None:
    town.open_door(1)
    town.give(1)
    town.courier_sockets.go(town.courier, monotonic_ns())

    town.courier.rest()
    town.courier_sockets.come_back(town.courier, monotonic_ns())

    assert town.poller.sockets == []
