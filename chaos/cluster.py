"""A cluster of real nodes, each of which can be stopped, killed, frozen and partitioned."""

import signal
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import httpx
import msgspec

from chaos.node import Node, Process, wait_until
from chaos.ports import HOST, free_ports
from chaos.proxy import Proxies
from corvo.queries.cluster import ClusterStatus, ReplicaView, ShardView

READY_S = 60.0
LED_S = 30.0
ALIKE_S = 60.0


class ClusterNode:
    """One node across restarts: the same name, directory and ports."""

    def __init__(self, name: str, data_dir: Path, http_port: int, raft_port: int, flags: Sequence[str]) -> None:
        self.name = name
        self.data_dir = data_dir
        self.url = f"http://{HOST}:{http_port}"
        self.address = f"{HOST}:{raft_port}"
        self.peers = ""  # the value of `--peers`
        self._bind = f"{HOST}:{http_port}"
        self._flags = flags
        self._log_begins = 0
        self._node: Node | None = None
        self._http = httpx.Client(base_url=self.url, timeout=5.0)

    def show(self, credential: str) -> None:
        """Send it with every request to this node."""
        self._http.headers["x-api-key"] = credential

    def __repr__(self) -> str:
        return self.name

    @property
    def is_running(self) -> bool:
        return self._node is not None

    @property
    def log_path(self) -> Path:
        return self.data_dir / "server.log"

    def log_of_this_life(self) -> str:
        return self.log_path.read_bytes()[self._log_begins :].decode()

    @property
    def is_founded(self) -> bool:
        return (self.data_dir / "identity.json").exists()

    @property
    def server(self) -> Node:
        assert self._node is not None, f"{self.name} does not run"
        return self._node

    def launch(self) -> None:
        """Starts the node without waiting for it."""
        assert self._node is None, f"{self.name} runs already"
        self._log_begins = self.log_path.stat().st_size if self.log_path.exists() else 0
        self._node = Node.launch(
            self.data_dir,
            *("--node-id", self.name, "--bind", self._bind, "--raft-bind", self.address),
            *("--raft-advertise", self.address, "--peers", self.peers, "--log-format", "json", *self._flags),
        )

    def start(self, seconds: float = READY_S) -> float:
        """Starts the node and waits until it is ready. Returns the seconds it took."""
        self.launch()
        return self.await_ready(seconds)

    def stop(self) -> int:
        """Stops the node cleanly. Returns its exit code."""
        node, self._node = self.server, None
        return node.stop()

    def kill(self) -> None:
        """Sends SIGKILL to the supervisor and all its processes at once."""
        node, self._node = self.server, None
        node.kill_all()

    def freeze(self, shard: int) -> None:
        self.server.kill(f"shard-{shard}", signal.SIGSTOP)

    def thaw(self, shard: int) -> None:
        self.server.kill(f"shard-{shard}", signal.SIGCONT)

    @property
    def processes(self) -> list[Process]:
        return self.server.processes()

    def await_ready(self, seconds: float = READY_S) -> float:
        return wait_until(self.is_ready, f"{self.name} to be ready", seconds)

    def is_ready(self) -> bool:
        if (code := self.server.exit_code) is not None:
            raise RuntimeError(f"{self.name} ended with {code}; see {self.log_path}")
        try:
            return self._http.get("/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def status(self) -> ClusterStatus | None:
        """The cluster as this node sees it; None if it does not answer."""
        if self._node is None:
            return None
        try:
            response = self._http.get("/api/v1/cluster/status")
        except httpx.HTTPError:
            return None
        return msgspec.json.decode(response.content, type=ClusterStatus) if response.status_code == 200 else None

    def close(self) -> None:
        """Ends the node, in whatever state it is."""
        self._http.close()
        node, self._node = self._node, None
        if node is not None:
            node.kill_all()


Led = tuple[ClusterNode, ShardView]  # a leader, and its own view of the shard


class Cluster:
    def __init__(self, nodes: list[ClusterNode], shards: int, proxies: Proxies | None) -> None:
        self.nodes = nodes
        self.shards = shards
        self._proxies = proxies

    @classmethod
    def start(
        cls, folder: Path, nodes: int = 3, shards: int = 2, proxied: bool = False, extra_flags: Sequence[str] = ()
    ) -> Self:
        """Starts all nodes and waits until they are ready. If proxied, each has its own proxies to the others, which
        `cut_off` can block."""
        flags = ("--shards", str(shards), *extra_flags)
        members = []
        for number, first in enumerate(free_ports(shards + 1, nodes), 1):
            name = f"node-{number}"
            members.append(ClusterNode(name, folder / f"n{number}", first + shards, first, flags))
        cluster = cls(members, shards, None)
        listed = {node.name: node.address for node in members}
        try:
            cluster._launch(lambda node: listed)
            if proxied:
                # The cluster's id is derived from the founding addresses, so all nodes first get the same ones.
                wait_until(lambda: all(node.is_founded for node in members), "the cluster to be founded", READY_S)
                for node in members:
                    node.kill()
                cluster._proxies = proxies = Proxies(listed, shards)
                cluster._launch(lambda node: {**proxies.addresses_for(node.name), node.name: node.address})
            cluster.await_ready()
        except BaseException:
            cluster.close()
            raise
        return cluster

    def _launch(self, peers_of: Callable[[ClusterNode], dict[str, str]]) -> None:
        for node in self.nodes:
            node.peers = ",".join(f"{name}={address}" for name, address in sorted(peers_of(node).items()))
            node.launch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        with ExitStack() as ends:
            if self._proxies is not None:
                ends.callback(self._proxies.close)
            for node in self.nodes:
                ends.callback(node.close)

    # State

    @property
    def running(self) -> list[ClusterNode]:
        return [node for node in self.nodes if node.is_running]

    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    def leader_of(self, shard: int, among: Iterable[ClusterNode] | None = None) -> ClusterNode:
        """The leader; waits until there is one."""
        return self._await_led(shard, among)[0]

    def replicas_of(self, shard: int) -> list[ReplicaView]:
        """The replicas, as listed by the leader."""
        return self._await_led(shard)[1].replicas

    def _await_led(self, shard: int, among: Iterable[ClusterNode] | None = None) -> Led:
        asked = None if among is None else list(among)
        found: list[Led] = []

        def is_led() -> bool:
            found[:] = self._find_led(shard, self.running if asked is None else asked)
            return bool(found)

        wait_until(is_led, f"shard {shard} to have a leader", LED_S)
        return found[-1]

    @staticmethod
    def _find_led(shard: int, asked: list[ClusterNode]) -> list[Led]:
        """All nodes that claim to lead, highest term last: an old leader that is cut off may not know better."""
        with ThreadPoolExecutor(len(asked)) as pool:  # a node that cannot reach another answers slowly
            statuses = list(pool.map(ClusterNode.status, asked))
        views = [(node, status.groups[shard]) for node, status in zip(asked, statuses, strict=True) if status]
        return sorted((led for led in views if led[1].state == "leader"), key=lambda led: led[1].term)

    def await_ready(self, seconds: float = READY_S) -> float:
        """Waits until every running node serves every shard."""
        return wait_until(lambda: all(node.is_ready() for node in self.running), "all nodes to be ready", seconds)

    def await_caught_up(self, seconds: float = ALIKE_S) -> float:
        """Waits until every replica has applied what its leader has committed now. The load may go on."""
        goals = [max(replica.commit_index for replica in self.replicas_of(shard)) for shard in range(self.shards)]

        def has_caught_up(shard: int) -> bool:
            return all(
                replica.error is None and replica.applied_index >= goals[shard] for replica in self.replicas_of(shard)
            )

        return wait_until(lambda: all(map(has_caught_up, range(self.shards))), "every replica to catch up", seconds)

    def await_alike(self, seconds: float = ALIKE_S) -> float:
        """Waits until all replicas of every shard hold the same state. Only without load."""
        return wait_until(lambda: all(map(self.is_alike, range(self.shards))), "the replicas to be alike", seconds)

    def is_alike(self, shard: int) -> bool:
        replicas = self.replicas_of(shard)
        states = {(replica.applied_index, replica.state_hash) for replica in replicas}
        return len(replicas) == len(self.nodes) and len(states) == 1 and not any(replica.error for replica in replicas)

    # Partitions

    def cut_off(self, node: ClusterNode, hears: bool = False, speaks: bool = False) -> None:
        """Blocks traffic between this node and the others, in both directions or one; its clients still reach it."""
        for other in self.nodes:
            if other is not node:
                self.part(node, other, hears, speaks)

    def part(self, node: ClusterNode, other: ClusterNode, hears: bool = False, speaks: bool = False) -> None:
        if not speaks:
            self.proxies.cut(node.name, other.name)
        if not hears:
            self.proxies.cut(other.name, node.name)

    def heal(self) -> None:
        self.proxies.heal()

    @property
    def proxies(self) -> Proxies:
        assert self._proxies is not None, "only a proxied cluster can be partitioned"
        return self._proxies
