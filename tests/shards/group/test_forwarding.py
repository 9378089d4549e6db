"""Calls passed on: answered once, by whom they were sent to, or told to be asked again."""

from corvo.wire import Call, Reply
from shards.group import forwarding
from shards.group.forwarding import Forwarding, foreign_peer, parse_foreign
from shards.group.messages import ForwardedCalls, ForwardedReplies, MessageBody, PeerMessage

GATEWAY = b"\0gw"
LONG_MS = 60_000
SECOND = 1_000_000_000


class Office:
    def __init__(self) -> None:
        self.sent: list[PeerMessage] = []
        self.is_open = True

    def send(self, node: str, body: MessageBody) -> bool:
        if self.is_open:
            self.sent.append(PeerMessage(node, body))
        return self.is_open


def a_call(number: int, deadline_ms: int = LONG_MS) -> Call:
    return Call(number, deadline_ms, b"ask")


def test_calls_of_one_turn_travel_in_one_letter_per_asker() -> None:
    office = Office()
    forwarding = Forwarding(office.send)
    for number in (1, 2):
        forwarding.forward("node-2", GATEWAY, a_call(number), 0)
    forwarding.forward("node-2", b"\0other", a_call(1), 0)

    assert forwarding.flush() == []
    assert office.sent == [
        PeerMessage("node-2", ForwardedCalls(GATEWAY, [a_call(1), a_call(2)])),
        PeerMessage("node-2", ForwardedCalls(b"\0other", [a_call(1)])),
    ]
    assert len(forwarding) == 3


def test_an_answer_is_taken_once_and_only_if_it_is_awaited() -> None:
    office = Office()
    forwarding = Forwarding(office.send)
    forwarding.forward("node-2", GATEWAY, a_call(1), 0)
    forwarding.flush()
    answer = ForwardedReplies(GATEWAY, [Reply(1, False, b"yes"), Reply(9, False, b"stray")])

    assert forwarding.take_back(answer) == [Reply(1, False, b"yes")]
    assert forwarding.take_back(answer) == []


def test_what_cannot_be_sent_is_lost_at_once() -> None:
    office = Office()
    forwarding = Forwarding(office.send)
    office.is_open = False
    forwarding.forward("node-2", GATEWAY, a_call(1), 0)

    assert forwarding.flush() == [(GATEWAY, 1)]
    assert len(forwarding) == 0


def test_calls_to_a_node_that_is_gone_are_forgotten_and_others_are_not() -> None:
    forwarding = Forwarding(Office().send)
    forwarding.forward("node-2", GATEWAY, a_call(1), 0)
    forwarding.forward("node-3", GATEWAY, a_call(2), 0)

    assert forwarding.forget("node-2") == [(GATEWAY, 1)]
    assert forwarding.forget() == [(GATEWAY, 2)]


def test_a_recall_follows_its_call() -> None:
    office = Office()
    forwarding = Forwarding(office.send)
    forwarding.forward("node-2", GATEWAY, a_call(1), 0)
    forwarding.recall(GATEWAY, 1, 0)
    forwarding.recall(GATEWAY, 7, 0)
    forwarding.flush()

    assert office.sent == [PeerMessage("node-2", ForwardedCalls(GATEWAY, [a_call(1), Call(1, 0, b"")]))]


def test_a_call_past_its_deadline_is_nobodys() -> None:
    forwarding = Forwarding(Office().send)
    forwarding.forward("node-2", GATEWAY, a_call(1, deadline_ms=500), 0)
    forwarding.forward("node-2", GATEWAY, a_call(2), 0)

    forwarding.sweep(SECOND, lambda peer: True)

    assert forwarding.forget() == [(GATEWAY, 2)]


def test_calls_of_a_gateway_that_died_are_taken_back() -> None:
    office = Office()
    forwarding = Forwarding(office.send)
    forwarding.forward("node-2", b"\0dead", a_call(1), 0)
    forwarding.forward("node-2", GATEWAY, a_call(1), 0)
    forwarding.flush()

    forwarding.sweep(SECOND, lambda peer: peer != b"\0dead")
    forwarding.flush()

    assert office.sent[-1] == PeerMessage("node-2", ForwardedCalls(b"\0dead", [Call(1, 0, b"")]))
    assert forwarding.forget() == [(GATEWAY, 1)]


def test_what_is_under_way_is_bounded() -> None:
    full = Forwarding(Office().send)
    for number in range(forwarding.OUTSTANDING_MAX):
        full.forward("node-2", GATEWAY, a_call(number), 0)
    assert full.is_full


def test_a_foreign_name_is_read_back_whatever_bytes_it_has() -> None:
    for peer in (b"\0abc", b"|", b"@node-1|\0x", b""):
        assert parse_foreign(foreign_peer("node-2", peer)) == ("node-2", peer)
    assert parse_foreign(GATEWAY) is None
