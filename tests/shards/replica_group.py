"""Three replicas of one shard on real LevelDBs, their letters carried by hand and their clocks moved together.

Letters wait in `mail` until `deliver` brings them over; a node in `cut_off` neither gets nor sends any. Every letter
goes through its bytes, as on the wire.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corvo.endpoint import Operation, Query
from corvo.model.errors import Refusal
from corvo.state import keys
from corvo.wire import Call, decode_result, encode
from shards import raft
from shards.errors import Replaced
from shards.group.config import GroupConfig
from shards.group.messages import MessageBody, PeerMessage, seal, unseal
from shards.replica import Replica
from shards.snapshots.transfer import Snapshots, finish_install
from shards.storage.leveldb import Disk
from shards.storage.sync_thread import Action
from tests.shards.rig import FakeCallers
from tests.support.builders import NOW

GROUP = "cluster/0/1"
MS = 1_000_000
NODES = ("node-1", "node-2", "node-3")
WAITING: Any = "still waiting"


class FakeLinks:
    """The links of one node: what it sends goes to the group's `mail`, what arrives for it is put in `inbox`."""

    def __init__(self, group: "Group", name: str) -> None:
        self.refused = 0
        self.inbox: list[PeerMessage] = []
        self.broken: set[str] = set()
        self._group = group
        self._name = name

    def send(self, node: str, body: MessageBody) -> bool:
        return self._group.post(self._name, PeerMessage(node, body))

    def receive(self) -> list[PeerMessage]:
        received, self.inbox = self.inbox, []
        return received

    def lost(self) -> set[str]:
        broken, self.broken = self.broken, set()
        return broken

    def carries(self, node: str) -> bool:
        return True


class Node:
    def __init__(self, group: "Group", name: str, founders: tuple[str, ...]) -> None:
        self.group = group
        self.name = name
        self.founders = founders
        self.path = group.folder / name
        self.answers: dict[int, Any] = {}
        self.asked: dict[int, type[Operation] | type[Query]] = {}
        self.is_running = False
        self.replacements = 0
        self.slow_ms = 0  # how long the next write takes
        self.listens = True  # to the others, while it writes
        self.while_writing: Action = lambda: None
        self.is_writing = False
        self.start(first_incarnation=0 if founders else 1_000_000)

    @property
    def identity(self) -> bytes:
        return f"cluster/{self.name}".encode()

    def start(self, first_incarnation: int = 0) -> None:
        finish_install(self.path)
        if not self.path.exists():
            Disk.create(self.path, self.identity)
        self.disk = Disk(self.path, self.identity, False)
        if first_incarnation:  # of a newcomer: see `shards.__main__`
            self.disk.write({keys.FORGETFUL: b"\1", keys.INCARNATION: encode(first_incarnation)})
        self.links = FakeLinks(self.group, self.name)
        self.snapshots = Snapshots(self.disk, self.path, self.identity, self.links.send)
        is_forgetful = self.disk.get(keys.FORGETFUL) is not None
        group_config = GroupConfig(
            founders=() if is_forgetful else self.founders,
            address=f"127.0.0.1:{self.name[-1]}400",
            nodes=NODES,
            links=self.links,
            writing=self._write,
            snapshots=self.snapshots,
            options=raft.Options(heartbeat_ns=100 * MS, election_ns=500 * MS, disk_stall_ns=5_000 * MS),
        )
        group = self.group
        self.callers = FakeCallers()
        self.replica = Replica(
            0,
            self.name,
            self.disk,
            self.callers,
            lambda: group.wall_ns,
            lambda: group.now_ns,
            int(self.name[-1]),
            False,
            group_config,
        )
        self.is_running = True

    def kill(self) -> None:
        self.is_running = False
        self.replica.close()

    def reset(self) -> None:
        """As `corvo node reset` and the start after it do."""
        self.kill()
        for file in self.path.iterdir():
            file.unlink()
        self.path.rmdir()
        Disk.create(self.path, self.identity)
        disk = Disk(self.path, self.identity, False)
        disk.write({keys.FORGETFUL: b"\1", keys.INCARNATION: encode(1_000_000)})
        disk.close()
        self.start()

    def send(self, ask: Operation | Query, deadline_ms: int = 600_000) -> int:
        self.group.last_id += 1
        self.asked[self.group.last_id] = type(ask)
        self.turn([(b"gateway", [Call(self.group.last_id, deadline_ms, encode(ask))])])
        return self.group.last_id

    def turn(self, arrived: Any = (), messages: Any = ()) -> None:
        if not self.is_running or self.is_writing:
            return
        self.callers.arrived += arrived
        self.links.inbox += messages
        try:
            self.replica.turn(self.group.now_ns)
        except Replaced:
            self.replacements += 1
            self._take_replies()
            self.kill()
            self.start()
        else:
            self._take_replies()

    def _take_replies(self) -> None:
        for peer, some in self.callers.take_replies():
            assert peer == b"gateway"
            for reply in some:
                assert reply.id not in self.answers, "a call was answered twice"
                try:
                    self.answers[reply.id] = decode_result(self.asked[reply.id], reply)
                except Refusal as refusal:
                    self.answers[reply.id] = refusal.to_refused()

    def _write(self, write: Action, meanwhile: Action) -> None:
        """Time passes for everybody while this disk is slow."""
        slow_ms, self.slow_ms = self.slow_ms, 0
        self.is_writing = True
        for _ in range(0, slow_ms, 20):
            self.group.pass_time(20)
            if self.listens:
                meanwhile()
            self.while_writing()
        write()
        self.is_writing = False
        self.group.mail.extendleft(
            (posted.node, self.name, seal(GROUP, *posted)) for posted in reversed(self.links.receive())
        )


class Group:
    def __init__(self, folder: Path, names: tuple[str, ...] = NODES) -> None:
        self.folder = folder
        self.now_ns = 1_000_000_000
        self.wall_ns = NOW
        self.last_id = 0
        self.mail: deque[tuple[str, str, bytes]] = deque()
        self.cut_off: set[str] = set()
        self.lost: Callable[[str, PeerMessage], bool] = lambda sender, posted: False  # what the post office refuses
        self.while_delivering: Callable[[], object] = lambda: None  # called before each message
        self.nodes: dict[str, Node] = {}
        for name in names:
            self.nodes[name] = Node(self, name, names)

    def join(self, name: str) -> Node:
        self.nodes[name] = node = Node(self, name, ())
        return node

    def close(self) -> None:
        for node in self.nodes.values():
            if node.is_running:
                node.kill()

    def post(self, sender: str, posted: PeerMessage) -> bool:
        receiver = self.nodes.get(posted.node)
        is_away = receiver is None or not receiver.is_running or {sender, posted.node} & self.cut_off
        if is_away or self.lost(sender, posted):
            return False
        self.mail.append((sender, posted.node, seal(GROUP, sender, posted.body)))
        return True

    def deliver(self) -> None:
        """Everything that is under way, and everything that is said in answer."""
        for _ in range(10_000):
            if not self.mail:
                return
            self.while_delivering()
            sender, receiver, frame = self.mail.popleft()
            if {sender, receiver} & self.cut_off:
                continue
            node = self.nodes[receiver]
            if node.is_writing:
                node.links.inbox.append(unseal(GROUP, frame))
            else:
                node.turn((), [unseal(GROUP, frame)])
        raise AssertionError("the letters never end")

    def pass_time(self, ms: int) -> None:
        for _ in range(0, ms, 10):
            self.now_ns += 10 * MS
            self.wall_ns += 10 * MS
            for node in list(self.nodes.values()):
                node.turn()
            self.deliver()

    def until(self, condition: Callable[[], bool], what: str, ms_max: int = 20_000) -> None:
        for _ in range(0, ms_max, 10):
            if condition():
                return
            self.pass_time(10)
        raise AssertionError(f"not within {ms_max} ms: {what}")

    def leaders(self) -> list[str]:
        running = [node for node in self.nodes.values() if node.is_running and node.name not in self.cut_off]
        return [node.name for node in running if node.replica.raft.is_leader]

    def leader(self) -> Node:
        self.until(lambda: len(self.leaders()) == 1, "one leader")
        return self.nodes[self.leaders()[0]]

    def follower(self) -> Node:
        leader = self.leader()
        self.until(lambda: self._followers(leader.name) != [], "a follower that knows the leader")
        return self._followers(leader.name)[0]

    def _followers(self, leader: str) -> list[Node]:
        return [
            node
            for node in self.nodes.values()
            if node.is_running and node.name != leader and node.replica.raft.leader_id == leader
        ]

    def ask(self, node: Node, ask: Operation | Query, ms_max: int = 5_000) -> Any:
        number = node.send(ask)
        self.deliver()
        self.until(lambda: number in node.answers, f"an answer to {ask}", ms_max)
        return node.answers[number]

    def hashes(self) -> set[tuple[int, bytes]]:
        return {
            (node.replica.tables.applied.index, node.replica.tables.applied.hash)
            for node in self.nodes.values()
            if node.is_running
        }

    def agree(self) -> None:
        self.until(lambda: len(self.hashes()) == 1, f"equal states, not {self.hashes()}")
