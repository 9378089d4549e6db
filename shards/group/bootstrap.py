"""A node without data finds its cluster: `python -m shards.group.bootstrap --run-dir run`, before the shards start.

It asks the nodes that its settings name, answers those that ask it, decides, and writes `identity.json`. The decisions
are functions of the answers and stand first; `Bootstrap` asks and listens. Two rules keep clusters
whole: a name that has lived in a cluster never begins anew with an empty disk, and nodes that find each other by a name
found a cluster only when each of them has said that it sees the same set.
"""

import argparse
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import msgspec
import structlog
import zmq

from corvo.runtime.addresses import check_reachable, is_loopback, join_address, split_address
from corvo.runtime.clustering import advertised_address, parse_addresses, parse_peers, unreachable_address
from corvo.runtime.process import (
    Identity,
    configure_logging,
    die_with_parent,
    read_identity,
    read_settings,
    write_identity,
)
from corvo.runtime.settings import Settings
from shards.group.messages import Introduction, Welcome
from shards.group.peers import Keys, Peers, read_keys

ASK_AGAIN_S = 0.1
LOOK_UP_AGAIN_S = 1.0
PROGRESS_S = 5.0

log = structlog.get_logger()


class Patience(NamedTuple):
    """Seconds. `listen` is how long an address that does not answer may be the one with the cluster."""

    listen: float = 3.0
    join: float = 60.0
    discover: float = 120.0


class BootstrapFailed(Exception):
    """What is wrong and what to do, in a sentence."""


def check_secrecy(keys: Keys | None, addresses: Iterable[str]) -> None:
    if keys is not None:
        return
    for address in addresses:
        if not is_loopback(address):
            raise BootstrapFailed(
                f"without a secret nodes use loopback addresses only, and {address} is none:"
                " give all nodes the same --cluster-secret-file"
            )


def check_advertised(settings: Settings, host_name: str) -> None:
    """A machine that does not know its own name calls itself localhost, like every other one."""
    if address := unreachable_address(settings, host_name):
        raise BootstrapFailed(f"other nodes cannot reach this one at {address}: give --raft-advertise")


def check_name(me: Introduction, other: Introduction | Welcome) -> None:
    if other.node_id == me.node_id and other.address != me.address:
        raise BootstrapFailed(
            f"two nodes are called {me.node_id}, this one at {me.address} and one at {other.address}:"
            " give each its own --node-id"
        )


def check_answer(me: Introduction, answer: Welcome) -> None:
    check_name(me, answer)
    if answer.shards != me.shards:
        raise BootstrapFailed(
            f"{answer.node_id} at {answer.address} has {answer.shards} shards and this node {me.shards}:"
            f" start with --shards {answer.shards}"
        )
    if answer.knows_you:
        raise BootstrapFailed(
            f"{me.node_id} has lived in the cluster before and its data is gone: remove it with"
            f" `corvo cluster remove {me.node_id}`, then start it with --join {answer.address}"
        )


def cluster_id_of(nodes: Mapping[str, str], shards: int, keys: Keys | None) -> str:
    """The same on every founder, without communication."""
    facts = (sorted(nodes.items()), shards, keys.public if keys else b"")
    return blake2b(msgspec.msgpack.encode(facts), digest_size=16).hexdigest()


def found(me: Introduction, peers: Mapping[str, str], answers: Collection[Welcome], keys: Keys | None) -> Identity:
    """`--peers`: a node of the list needs no consent, only that no node that has answered objects."""
    if me.node_id not in peers:
        raise BootstrapFailed(f"{me.node_id} is not among --peers ({', '.join(peers)}): give one of these as --node-id")
    cluster_id = cluster_id_of(peers, me.shards, keys)
    for answer in answers:
        check_answer(me, answer)
        if answer.cluster_id and answer.cluster_id != cluster_id:
            raise BootstrapFailed(
                f"{answer.node_id} at {answer.address} belongs to another cluster: start with the --peers that"
                f" founded it, or with --join {answer.address}"
            )
        if not answer.cluster_id and answer.nodes and answer.nodes != peers:
            raise BootstrapFailed(
                f"{answer.node_id} at {answer.address} was started with other --peers: give all nodes the same list"
            )
    return Identity(cluster_id, me.node_id, me.shards, founders=tuple(sorted(peers)), nodes=dict(peers))


def is_majority(heard: Collection[str], peers: Mapping[str, str]) -> bool:
    """Below it no leader could be elected anyway. And if this is an old node that lost its disk, one of a majority is
    likely to know."""
    return len(set(heard) & peers.keys()) >= len(peers) // 2 + 1


def join(me: Introduction, answers: Collection[Welcome]) -> Identity | None:
    """`--join`: the cluster decides when this node votes; it founds nothing. None: no cluster has answered."""
    for answer in answers:
        check_name(me, answer)
    members = [answer for answer in answers if answer.cluster_id]
    for answer in members:
        check_answer(me, answer)
        if answer.cluster_id != members[0].cluster_id:
            raise BootstrapFailed(
                f"{members[0].node_id} at {members[0].address} and {answer.node_id} at {answer.address} belong to"
                " different clusters: name nodes of one only"
            )
    if not members:
        return None
    nodes = {name: address for answer in members for name, address in _known_to(answer).items()}
    return Identity(members[0].cluster_id, me.node_id, me.shards, founders=(), nodes=nodes)


def discover(me: Introduction, expected: int, answers: Collection[Welcome], keys: Keys | None) -> Identity | None:
    """`--discover`: join a cluster if there is one, else found it with the others. None: too few have answered.

    A set is founded when all in it have named exactly it. What a node sees only grows, so of two sets that share a node
    only one can be founded, even where more nodes than expected are about.
    """
    joined = join(me, answers)
    if joined is not None:
        founders = next((answer.founders for answer in answers if me.node_id in answer.founders), ())
        return msgspec.structs.replace(joined, founders=founders, nodes={**joined.nodes, me.node_id: me.address})
    for answer in answers:
        check_answer(me, answer)
    seen = sighted(me, answers)
    agreed = all(answer.nodes == seen for answer in answers if answer.node_id != me.node_id)
    if len(seen) != expected or not agreed:
        return None
    cluster_id = cluster_id_of(seen, me.shards, keys)
    return Identity(cluster_id, me.node_id, me.shards, founders=tuple(sorted(seen)), nodes=seen)


def sighted(me: Introduction, answers: Iterable[Welcome]) -> dict[str, str]:
    """The nodes without a cluster that have answered, and this one."""
    return {me.node_id: me.address} | {answer.node_id: answer.address for answer in answers if not answer.cluster_id}


def _known_to(answer: Welcome) -> dict[str, str]:
    return {answer.node_id: answer.address} | answer.nodes


class Resolver:
    """The addresses behind a name, looked up again and again on a thread: a resolver that hangs stops nothing else."""

    def __init__(self, name: str, port: int) -> None:
        self._name = name
        self._port = port
        self._addresses: list[str] = []
        self._is_closed = threading.Event()
        threading.Thread(target=self._look_up, daemon=True).start()

    def __call__(self) -> list[str]:
        return self._addresses

    def _look_up(self) -> None:
        while not self._is_closed.is_set():
            try:
                found = socket.getaddrinfo(self._name, self._port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                found = []  # the name may exist only when the first node is ready
            self._addresses = [
                join_address(host, self._port) for host in sorted({str(place[0]) for *_, place in found})
            ]
            self._is_closed.wait(LOOK_UP_AGAIN_S)

    def close(self) -> None:
        self._is_closed.set()


class Bootstrap:
    """Asks, answers and waits until a decision can be made."""

    def __init__(
        self,
        settings: Settings,
        host_name: str,
        resolve: Callable[[], list[str]] | None = None,
        patience: Patience = Patience(),
    ) -> None:
        try:
            self._keys = read_keys(settings.cluster_secret_file)
            self._listed = parse_peers(settings.peers)
            self._join = parse_addresses(settings.join)
            self.me = Introduction(settings.node_id, advertised_address(settings, host_name), settings.shards)
            check_reachable(self.me.address)
        except ValueError as error:
            raise BootstrapFailed(str(error)) from None
        check_advertised(settings, host_name)
        check_secrecy(self._keys, [settings.raft_bind, self.me.address, *self._listed.values(), *self._join])
        self._settings = settings
        self._resolve = resolve
        self._patience = patience
        self._answers: dict[str, Welcome] = {}  # by the address that was asked
        self._namesake: Introduction | None = None
        self._introduced: set[str] = set()  # nodes that introduced themselves here
        self._begun_at = monotonic()
        self._told_at = float("-inf")
        self._context: zmq.Context[Any] = zmq.Context()
        try:
            self._peers = Peers(self._context, settings.node_id, "", settings.raft_bind, self._keys)
        except OSError as error:
            self._context.term()
            raise BootstrapFailed(str(error)) from None

    def run(self) -> Identity:
        while True:
            addresses = self._to_ask()
            self._ask(addresses)
            self._listen(ASK_AGAIN_S)
            if self._namesake is not None:
                check_name(self.me, self._namesake)
            identity = self._decide(addresses)
            if identity is not None:
                return identity
            self._give_up_or_log(addresses)

    def close(self) -> None:
        self._peers.close()
        self._context.term()

    def _to_ask(self) -> list[str]:
        """Joining goes first: a node that is told both founds nothing."""
        if self._join:
            return self._join
        if self._listed:
            return [address for name, address in self._listed.items() if name != self.me.node_id]
        addresses = self._resolve() if self._resolve is not None else []
        check_secrecy(self._keys, addresses)
        return addresses

    def _ask(self, addresses: list[str]) -> None:
        for address in addresses:
            self._peers.connect(address, address)
            self._peers.send(address, self.me)

    def _listen(self, seconds: float) -> None:
        deadline = monotonic() + seconds
        while (remaining := deadline - monotonic()) > 0:
            self._peers.wait(int(remaining * 1_000) + 1)
            for address, body in self._peers.receive():
                if isinstance(body, Welcome):
                    self._answers[address] = body
            for sender, introduction in self._peers.introductions():
                self._peers.welcome(sender, self._welcome(introduction))

    def _welcome(self, introduction: Introduction) -> Welcome:
        if introduction.node_id == self.me.node_id and introduction.address != self.me.address:
            self._namesake = introduction
        self._introduced.add(introduction.node_id)
        if self._join:
            nodes = {}
        else:
            nodes = self._listed or sighted(self.me, self._answers.values())
        return Welcome(self.me.node_id, self.me.address, self.me.shards, nodes=nodes)

    def _decide(self, addresses: list[str]) -> Identity | None:
        answers = self._answers.values()
        if self._join:
            return join(self.me, answers)
        if self._listed:
            identity: Identity | None = found(self.me, self._listed, answers, self._keys)
            heard = {self.me.node_id, *self._introduced, *(answer.node_id for answer in answers)}
            if not is_majority(heard, self._listed):
                return None
        else:
            identity = discover(self.me, self._settings.expect_nodes, answers, self._keys)
        is_heard_out = self._answers.keys() >= set(addresses) and bool(addresses or self._listed)
        return identity if is_heard_out or self._waited() >= self._patience.listen else None

    def _waited(self) -> float:
        return monotonic() - self._begun_at

    def _give_up_or_log(self, addresses: list[str]) -> None:
        is_joining = bool(self._join)
        heard = sorted({answer.node_id for answer in self._answers.values()} | {self.me.node_id})
        if is_joining and self._waited() >= self._patience.join:
            raise BootstrapFailed(
                f"no node of a cluster answered at {', '.join(self._join)} for {self._patience.join:g} seconds:"
                " check --join, that the cluster runs, and that all nodes have the same --cluster-secret-file"
            )
        if not is_joining and not self._listed and self._waited() >= self._patience.discover:
            raise BootstrapFailed(
                f"{len(heard)} of {self._settings.expect_nodes} expected nodes answered within"
                f" {self._patience.discover:g} seconds ({', '.join(heard)}): check --discover-dns-name, --expect-nodes,"
                " and that all nodes have the same --cluster-secret-file"
            )
        if monotonic() - self._told_at < PROGRESS_S:
            return
        self._told_at = monotonic()
        silent = [address for address in addresses if address not in self._answers]
        if is_joining:
            log.info("waiting for a node of the cluster to join", asked=addresses, silent=silent)
        else:
            expected = len(self._listed) or self._settings.expect_nodes
            log.info(f"waiting for {max(0, expected - len(heard))} of {expected} nodes", heard=heard, silent=silent)


def find_cluster(settings: Settings, host_name: str) -> Identity:
    resolver = Resolver(settings.discover_dns_name, split_address(settings.raft_bind)[1]) if settings.discover else None
    bootstrap = None
    try:
        bootstrap = Bootstrap(settings, host_name, resolver)
        return bootstrap.run()
    finally:
        for part in (bootstrap, resolver):
            if part is not None:
                part.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m shards.group.bootstrap", description="Find or found the cluster.")
    parser.add_argument("--run-dir", type=Path, required=True)
    options = parser.parse_args()
    # Nothing here needs tidying up, and a look-up in the C library would keep a handler of Python's waiting.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent()
    settings = read_settings(options.run_dir)
    configure_logging(settings.log_level, settings.log_format, process="bootstrap")
    data_dir = options.run_dir.parent
    if read_identity(data_dir) is not None:
        log.info("the data directory has an identity already")
        return 0
    try:
        identity = find_cluster(settings, socket.getfqdn())
    except BootstrapFailed as error:
        sys.stderr.write(f"{error}\n")
        return 2
    write_identity(data_dir, identity)
    log.info(
        "founding a cluster" if identity.founders else "joining a cluster",
        cluster_id=identity.cluster_id,
        nodes=sorted(identity.nodes),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
