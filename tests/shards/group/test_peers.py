"""Links between replicas: real sockets on loopback, at ports that the machine gave. Every wait has a deadline."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import structlog
import zmq

from shards.group import peers
from shards.group.messages import Introduction, MessageBody, PeerMessage, RaftMessage, Welcome, group_of, seal
from shards.group.peers import FRAME_BYTES_MAX, MESSAGES_PER_TURN, Keys, Peers, read_keys
from shards.raft.messages import Append, EntryKind, LeaderHeartbeat, LogEntry
from shards.snapshots.messages import SnapshotPiece, SnapshotWant

PATIENCE_S = 15.0
GROUP = group_of("c1", 0, 4)
KEYS = Keys(b"a secret of the whole cluster")
BEAT = RaftMessage(LeaderHeartbeat("a", "b", 1, 2, 3, commit=9, round=4))


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


class End:
    """A `Peers` with a context of its own, as each process has one."""

    def __init__(self, name: str, keys: Keys | None = None, bind: str = "", group: str = GROUP) -> None:
        self.address = bind or f"127.0.0.1:{free_port()}"
        self.context: zmq.Context[Any] = zmq.Context()
        self.got: list[PeerMessage] = []
        self.lost: set[str] = set()
        self.introduced: list[Introduction] = []
        self.answer: Callable[[Introduction], Welcome] | None = None
        try:
            self.peers = Peers(self.context, name, group, self.address, keys)
        except OSError:
            self.context.term()
            raise

    def turn(self) -> None:
        self.got += self.peers.receive()
        self.lost |= self.peers.lost()
        for sender, introduction in self.peers.introductions():
            self.introduced.append(introduction)
            if self.answer is not None:
                self.peers.welcome(sender, self.answer(introduction))

    def messages(self) -> list[MessageBody]:
        return [posted.body for posted in self.got]

    def close(self) -> None:
        if not self.context.closed:
            self.peers.close()
            self.context.term()


Ends = Callable[..., End]


@pytest.fixture
def ends() -> Iterator[Ends]:
    made: list[End] = []

    def make(*args: Any, **options: Any) -> End:
        made.append(End(*args, **options))
        return made[-1]

    yield make
    for end in made:
        end.close()


def until(condition: Callable[[], object], *ends: End, seconds: float = PATIENCE_S) -> bool:
    """Let all ends take turns, until it holds or the time is up."""
    deadline = monotonic() + seconds
    while True:
        for end in ends:
            end.turn()
        if condition():
            return True
        if monotonic() > deadline:
            return False
        for end in ends:
            end.peers.wait(5)


def link(a: End, b: End) -> None:
    a.peers.connect("b", b.address)
    assert until(lambda: a.peers.is_up("b"), a, b)


@pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "curve"])
def test_letters_arrive_with_their_sender(ends: Ends, keys: Keys | None) -> None:
    a, b = ends("a", keys), ends("b", keys)
    assert not a.peers.is_up("b")
    assert not a.peers.send("b", BEAT)
    link(a, b)
    assert a.peers.nodes() == {"b"}
    assert a.peers.send("b", SnapshotWant(1, b"host:9400"))
    assert until(lambda: b.got, a, b)
    assert b.got == [PeerMessage("a", SnapshotWant(1, b"host:9400"))]
    assert (a.peers.refused, b.peers.refused) == (0, 0)


@pytest.mark.parametrize("theirs", [Keys(b"a secret of somebody else"), None], ids=["wrong key", "no key"])
def test_who_does_not_know_the_secret_cannot_connect_and_is_told_of_once(
    ends: Ends, theirs: Keys | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "REOPEN_S", 0.2)
    with structlog.testing.capture_logs() as lines:
        server, stranger = ends("b", KEYS), ends("a", theirs)
        stranger.peers.connect("b", server.address)
        assert until(lambda: server.peers.refused >= 4 and len(lines) >= 2, server, stranger)
    assert not stranger.peers.is_up("b")
    assert stranger.lost == set()  # it has never been up
    assert not stranger.peers.send("b", BEAT)
    assert not stranger.peers.send("b", SnapshotWant(1, b"x:1"))
    assert server.got == []
    assert sorted(line["event"] for line in lines) == ["a node hangs up", "a node was refused"]


def test_a_node_with_a_secret_does_not_speak_to_one_without(ends: Ends) -> None:
    server, caller = ends("b"), ends("a", KEYS)
    with structlog.testing.capture_logs() as lines:
        caller.peers.connect("b", server.address)
        assert until(lambda: lines, server, caller)
    assert not caller.peers.is_up("b")
    assert not caller.peers.send("b", SnapshotWant(1, b"x:1"))


def test_a_link_that_zeromq_has_given_up_is_made_anew(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "REOPEN_S", 0.2)
    caller = ends("a", KEYS)
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
    with socket.create_server(("127.0.0.1", 0)) as forgetful, structlog.testing.capture_logs() as lines:
        address = f"127.0.0.1:{forgetful.getsockname()[1]}"
        caller.peers.connect("b", address)
        for _ in ("small lane", "large lane"):
            connection, _ = forgetful.accept()
            connection.sendall(greeting)
            with connection:
                while connection.recv(1024):
                    pass
        assert until(lambda: lines, caller)
    assert [line["event"] for line in lines] == ["a node hangs up"]
    link(caller, ends("b", KEYS, bind=address))


def test_the_guard_of_the_secret_leaves_local_sockets_of_the_process_alone(ends: Ends) -> None:
    a = ends("a", KEYS)
    local, caller = a.context.socket(zmq.ROUTER), a.context.socket(zmq.DEALER)
    try:
        port = local.bind_to_random_port("tcp://127.0.0.1")
        caller.connect(f"tcp://127.0.0.1:{port}")
        caller.send(b"hello")
        assert local.poll(PATIENCE_S * 1_000)
    finally:
        local.close(0)
        caller.close(0)


def test_a_broken_link_is_reported_once_and_comes_back_with_the_peer(ends: Ends) -> None:
    a, b = ends("a", KEYS), ends("b", KEYS)
    link(a, b)
    b.close()
    assert until(lambda: a.lost, a)
    assert a.lost == {"b"}
    assert not a.peers.is_up("b")
    assert not a.peers.send("b", SnapshotWant(1, b"to a former life"))
    assert until(lambda: not a.peers.send("b", BEAT), a)
    a.lost.clear()
    again = ends("b", KEYS, bind=b.address)
    link(a, again)
    assert a.lost == set()
    assert SnapshotWant(1, b"to a former life") not in again.messages()


def test_a_link_that_has_never_been_up_is_not_lost(ends: Ends) -> None:
    a = ends("a")
    a.peers.connect("b", f"127.0.0.1:{free_port()}")
    assert not until(lambda: a.lost or a.peers.is_up("b"), a, seconds=0.3)


def test_another_address_is_another_link_and_the_same_address_is_the_same(ends: Ends) -> None:
    a, b, moved = ends("a"), ends("b"), ends("b")
    link(a, b)
    a.peers.connect("b", b.address)
    assert a.peers.is_up("b")
    a.peers.connect("b", moved.address)
    assert a.peers.lost() == {"b"}
    link(a, moved)
    a.peers.disconnect("b")
    a.peers.disconnect("b")
    assert (a.peers.nodes(), a.peers.is_up("b"), a.peers.lost()) == (set(), False, set())
    assert not a.peers.send("b", BEAT)


def test_large_letters_do_not_hold_up_small_ones(ends: Ends) -> None:
    a, b = ends("a"), ends("b")
    link(a, b)
    entry = LogEntry(1, 1, EntryKind.NORMAL, bytes(200_000))
    append = RaftMessage(Append("a", "b", 1, 2, 3, prev_index=0, prev_term=0, commit=0, entries=[entry]))
    sent = 0
    # `b` does not read: the lane must fill, and sending must neither wait nor queue without end.
    assert until(lambda: not all(a.peers.send("b", append) for _ in range(8)), a)
    assert a.peers.send("b", BEAT)
    while a.peers.send("b", append):
        sent += 1
    assert until(lambda: BEAT in b.messages(), b)
    before = b.messages().index(BEAT)
    assert until(lambda: len(b.got) - 1 - before > MESSAGES_PER_TURN // 8, b)


def test_appends_keep_their_order_whatever_their_size(ends: Ends) -> None:
    a, b = ends("a"), ends("b")
    link(a, b)
    sizes = [3_000_000, 10, 500_000, 0, 100_000, 1]
    for index, size in enumerate(sizes, 1):
        entry = LogEntry(index, 1, EntryKind.NORMAL, bytes(size))
        append = Append("a", "b", 1, 2, 3, prev_index=index - 1, prev_term=1, commit=0, entries=[entry])
        assert a.peers.send("b", RaftMessage(append))
    assert until(lambda: len(b.got) == len(sizes), a, b)
    assert [body.message.entries[0].index for body in b.messages() if isinstance(body, RaftMessage)] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip


def test_a_turn_is_bounded(ends: Ends) -> None:
    a, b = ends("a"), ends("b")
    link(a, b)
    total = MESSAGES_PER_TURN + 50
    sent = 0
    while sent < total and a.peers.send("b", BEAT):
        sent += 1
    assert sent == total
    turns: list[int] = []

    def all_here() -> bool:
        turns.append(len(b.got) - sum(turns))
        return len(b.got) == total

    assert until(all_here, b)
    assert max(turns) <= MESSAGES_PER_TURN


def test_a_letter_above_the_bound_is_not_sent_and_costs_no_link(ends: Ends) -> None:
    a, b = ends("a", KEYS), ends("b", KEYS)
    link(a, b)
    fits = SnapshotPiece(1, b"", [(b"k", bytes(FRAME_BYTES_MAX - 1_000))], True, b"")
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            assert not a.peers.send("b", SnapshotPiece(1, b"", [(b"k", bytes(FRAME_BYTES_MAX))], True, b""))
    assert [line["event"] for line in lines] == ["a message was not sent"]
    assert a.peers.send("b", fits)
    assert until(lambda: b.got, a, b)
    assert b.messages() == [fits]
    assert a.lost == set()


@pytest.mark.parametrize(
    "frames",
    [
        [seal(group_of("c2", 0, 4), "x", BEAT)],
        [seal(group_of("c1", 0, 8), "x", BEAT)],
        [b"noise"],
        [b"", seal(GROUP, "x", BEAT)],
        [b""],
    ],
    ids=["another cluster", "another number of shards", "noise", "several parts", "nothing"],
)
def test_what_is_not_for_us_is_counted_and_told_of_once(ends: Ends, frames: list[bytes]) -> None:
    b = ends("b")
    stranger = b.context.socket(zmq.DEALER)
    try:
        stranger.connect(f"tcp://{b.address}")
        with structlog.testing.capture_logs() as lines:
            for _ in range(50):
                stranger.send_multipart(frames)
            assert until(lambda: b.peers.refused == 50, b)
        assert b.got == []
        assert [(line["event"], line["log_level"]) for line in lines] == [("a node was refused", "error")]
    finally:
        stranger.close(0)


def test_reasons_without_end_are_not_told_without_end(ends: Ends) -> None:
    b = ends("b")
    stranger = b.context.socket(zmq.DEALER)
    try:
        stranger.connect(f"tcp://{b.address}")
        with structlog.testing.capture_logs() as lines:
            for number in range(300):
                stranger.send(seal(f"c{number}", "x", BEAT))
            assert until(lambda: b.peers.refused == 300, b)
        assert len(lines) == 100
    finally:
        stranger.close(0)


@pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "curve"])
def test_an_introduction_is_answered_to_whoever_asked(ends: Ends, keys: Keys | None) -> None:
    def answer(introduction: Introduction) -> Welcome:
        return Welcome("b", "b:9400", 4, "c1", knows_you=introduction.node_id == "a")

    b = ends("b", keys)
    b.answer = answer
    a, c = ends("a", keys, group=""), ends("c", keys, group="")
    for end in (a, c):
        end.peers.connect("whoever is there", b.address)
        assert until(lambda end=end: end.peers.is_up("whoever is there"), end, b)
    for name, end in (("a", a), ("c", c)):
        assert end.peers.send("whoever is there", Introduction(name, f"{name}:9400", 4))
    assert until(lambda: a.got and c.got, a, b, c)
    assert a.got == [PeerMessage("whoever is there", Welcome("b", "b:9400", 4, "c1", knows_you=True))]
    assert c.got == [PeerMessage("whoever is there", Welcome("b", "b:9400", 4, "c1"))]
    assert {introduction.node_id for introduction in b.introduced} == {"a", "c"}
    assert b.got == []


def test_an_introduction_is_kept_apart_from_the_messages_of_replicas(ends: Ends) -> None:
    a, b = ends("a"), ends("b")
    link(a, b)
    assert a.peers.send("b", Introduction("a", "a:9400", 4))
    assert a.peers.send("b", SnapshotWant(1, b"a:9400"))  # on the same lane: the first has been read by then
    assert until(lambda: b.got, a, b)
    assert b.messages() == [SnapshotWant(1, b"a:9400")]
    assert b.introduced == [Introduction("a", "a:9400", 4)]
    assert (a.got, b.peers.refused) == ([], 0)


def test_a_port_in_use_is_said_in_a_sentence(ends: Ends) -> None:
    a = ends("a", KEYS)
    with pytest.raises(OSError, match=f"cannot listen on {a.address} for other nodes: address already in use; choose"):
        End("b", KEYS, bind=a.address)


def test_without_a_secret_nobody_listens_to_the_world() -> None:
    with pytest.raises(AssertionError, match="without a secret"):
        End("a", None, bind=":9400")


def test_an_address_that_is_none_stops_nobody(ends: Ends) -> None:
    a, b = ends("a"), ends("b")
    for address in ("not an address", "host:123456", "no port"):
        a.peers.connect("c", address)
        assert not a.peers.send("c", BEAT)
    link(a, b)


@pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "curve"])
def test_ipv6_in_brackets(ends: Ends, keys: Keys | None) -> None:
    try:
        port = free_port("::1")
    except OSError:
        pytest.skip("this machine has no IPv6")
    a, b = ends("a", keys), ends("b", keys, bind=f"[::1]:{port}")
    link(a, b)
    b.peers.connect("a", a.address)
    assert until(lambda: b.peers.is_up("a"), a, b)


def test_every_address_is_reached_by_name(ends: Ends) -> None:
    port = free_port()
    a, b = ends("a", KEYS), ends("b", KEYS, bind=f":{port}")
    b.address = f"localhost:{port}"
    link(a, b)


def test_a_secret_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(0o600)
    path.write_bytes(b"  sixteen bytes at least\n")
    keys = read_keys(str(path))
    assert keys is not None
    assert keys.public == Keys(b"sixteen bytes at least").public
    assert keys.public != KEYS.public
    assert read_keys("") is None
