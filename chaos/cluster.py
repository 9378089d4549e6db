"""Several nodes of real processes that form a cluster, each of which can be stopped, killed, frozen and cut off."""

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
    """One node through all its lives: the same name, directory and ports."""

    def __init__(self, name: str, data_dir: Path, http_port: int, raft_port: int, flags: Sequence[str]) -> None:
        self.name = name
        self.data_dir = data_dir
        self.url = f"http://{HOST}:{http_port}"
        self.address = f"{HOST}:{raft_port}"
        self.peers = ""  # as `--peers` has them
        self._bind = f"{HOST}:{http_port}"
        self._flags = flags
        self._log_begins = 0
        self._node: Node | None = None
        self._http = httpx.Client(base_url=self.url, timeout=5.0)

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
        """Started, and not waited for."""
        assert self._node is None, f"{self.name} runs already"
        self._log_begins = self.log_path.stat().st_size if self.log_path.exists() else 0
        self._node = Node.launch(
            self.data_dir,
            *("--node-id", self.name, "--bind", self._bind, "--raft-bind", self.address),
            *("--raft-advertise", self.address, "--peers", self.peers, "--log-format", "json", *self._flags),
        )

    def start(self, seconds: float = READY_S) -> float:
        """Ready when this returns; how long it took."""
        self.launch()
        return self.await_ready(seconds)

    def stop(self) -> int:
        """Exit code of an ordered stop."""
        node, self._node = self.server, None
        return node.stop()

    def kill(self) -> None:
        """SIGKILL for the supervisor and all its processes at once."""
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
        """As this node sees the cluster; None when it does not answer."""
        if self._node is None:
            return None
        try:
            response = self._http.get("/api/v1/cluster/status")
        except httpx.HTTPError:
            return None
        return msgspec.json.decode(response.content, type=ClusterStatus) if response.status_code == 200 else None

    def close(self) -> None:
        """The end of it, in whatever state it is."""
        self._http.close()
        node, self._node = self._node, None
        if node is not None:
            node.kill_all()


Led = tuple[ClusterNode, ShardView]  # a leader, and its shard as it sees it


class Cluster:
    def __init__(self, nodes: list[ClusterNode], shards: int, proxies: Proxies | None) -> None:
        self.nodes = nodes
        self.shards = shards
        self._proxies = proxies

    @classmethod
    def start(
        cls, folder: Path, nodes: int = 3, shards: int = 2, proxied: bool = False, extra_flags: Sequence[str] = ()
    ) -> Self:
        """All nodes ready. Proxied, each reaches the others through proxies of its own, and `cut` can part them."""
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
                # A cluster is known by the addresses that founded it: in the beginning all are told the same ones.
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

    # What it is like

    @property
    def running(self) -> list[ClusterNode]:
        return [node for node in self.nodes if node.is_running]

    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    def leader_of(self, shard: int, among: Iterable[ClusterNode] | None = None) -> ClusterNode:
        """Waits for one."""
        return self._await_led(shard, among)[0]

    def replicas_of(self, shard: int) -> list[ReplicaView]:
        """As its leader lists them."""
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
        """Those that say that they lead, the one of the latest term last: an old one that was cut off may not know."""
        with ThreadPoolExecutor(len(asked)) as pool:  # a node that misses another takes its time
            statuses = list(pool.map(ClusterNode.status, asked))
        views = [(node, status.groups[shard]) for node, status in zip(asked, statuses, strict=True) if status]
        return sorted((led for led in views if led[1].state == "leader"), key=lambda led: led[1].term)

    def await_ready(self, seconds: float = READY_S) -> float:
        """Until every node that runs serves every shard."""
        return wait_until(lambda: all(node.is_ready() for node in self.running), "all nodes to be ready", seconds)

    def await_caught_up(self, seconds: float = ALIKE_S) -> float:
        """Until every replica has what its shard's leader has committed by now. Work may go on meanwhile."""
        goals = [max(replica.commit_index for replica in self.replicas_of(shard)) for shard in range(self.shards)]

        def has_caught_up(shard: int) -> bool:
            return all(
                replica.error is None and replica.applied_index >= goals[shard] for replica in self.replicas_of(shard)
            )

        return wait_until(lambda: all(map(has_caught_up, range(self.shards))), "every replica to catch up", seconds)

    def await_alike(self, seconds: float = ALIKE_S) -> float:
        """Until all replicas of every shard hold the same state. Only when nobody works."""
        return wait_until(lambda: all(map(self.is_alike, range(self.shards))), "the replicas to be alike", seconds)

    def is_alike(self, shard: int) -> bool:
        replicas = self.replicas_of(shard)
        states = {(replica.applied_index, replica.state_hash) for replica in replicas}
        return len(replicas) == len(self.nodes) and len(states) == 1 and not any(replica.error for replica in replicas)

    # Partitions

    def cut_off(self, node: ClusterNode, hears: bool = False, speaks: bool = False) -> None:
        """Nothing passes between this node and the others, or only in one direction; its clients still reach it."""
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
        assert self._proxies is not None, "only a proxied cluster can be parted"
        return self._proxies
