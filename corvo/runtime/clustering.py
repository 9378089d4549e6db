"""Names and addresses of nodes in the settings. Pure: nothing is resolved or connected to.

A node has one address, host and first port; its shard i listens on that port plus i.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from corvo.model.limits import NODES_MAX
from corvo.runtime.addresses import EVERYWHERE, PORT_MAX, check_reachable, is_loopback, join_address, split_address

if TYPE_CHECKING:  # settings.py imports this module
    from corvo.runtime.settings import Settings

LOOPBACK_BIND = "127.0.0.1:9400"
MAKE_SECRET = "create one with `head -c 32 /dev/urandom | base64 > FILE` and give it with --cluster-secret-file"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # as `node_id` in the settings


def is_clustered(settings: "Settings") -> bool:
    """Whether this node has, or may get, other nodes beside it. One that may not listens on no port for them."""
    return bool(settings.bootstrap or settings.peers or settings.join or settings.discover)


def needs_secret(settings: "Settings") -> bool:
    """Whether the settings must name a secret. `--bootstrap` makes one."""
    return is_clustered(settings) and not settings.cluster_secret_file and not settings.bootstrap


def parse_peers(text: str) -> dict[str, str]:
    """`node-1=host:9400,node-2=host:9400` → address by name. ValueError with a sentence."""
    peers: dict[str, str] = {}
    for item in _items(text):
        name, separator, address = item.partition("=")
        if not separator or not _NAME.fullmatch(name):
            raise ValueError(f"{item!r} is not name=host:port")
        if name in peers:
            raise ValueError(f"{name} is named twice")
        _check_item(item, address)
        peers[name] = address
    if len(peers) > NODES_MAX:
        raise ValueError(f"it names {len(peers)} nodes; a cluster has at most {NODES_MAX}")
    return peers


def parse_addresses(text: str) -> list[str]:
    """`host:9400,host:9400` → addresses. ValueError with a sentence."""
    addresses = list(_items(text))
    for address in addresses:
        _check_item(address, address)
    return addresses


def shard_address(address: str, shard: int) -> str:
    host, port = split_address(address)
    return join_address(host, port + shard)


def advertised_address(settings: "Settings", host_name: str) -> str:
    """Where other nodes reach this one: from --raft-advertise, else from --peers, else the host name."""
    if settings.raft_advertise:
        return settings.raft_advertise
    peers = parse_peers(settings.peers)
    if settings.node_id in peers:
        return peers[settings.node_id]
    host, port = split_address(settings.raft_bind)
    return join_address(host_name, port) if host in EVERYWHERE else shard_address(settings.raft_bind, 0)


def unreachable_address(settings: "Settings", host_name: str) -> str:
    """The address that a machine works out for itself when it does not know its own name; empty: it knows it."""
    address = advertised_address(settings, host_name)
    is_worked_out = not settings.raft_advertise and settings.node_id not in parse_peers(settings.peers)
    return address if is_worked_out and is_loopback(address) and not is_loopback(settings.raft_bind) else ""


def pod_of(host_name: str) -> tuple[str, str]:
    """Node id and the name of all nodes, from the name of a machine. A pod `corvo-0.corvo-nodes.shop.svc.cluster.local`
    of a StatefulSet is node `corvo-0`, and its headless service resolves to all pods. ValueError with a sentence."""
    node_id, _, domain = host_name.partition(".")
    if not domain or not _NAME.fullmatch(node_id):
        raise ValueError(
            f"--discover dns needs --discover-dns-name, a name that resolves to the addresses of all nodes: this"
            f" machine is called {host_name!r}, which has no domain to take instead"
        )
    return node_id, domain


def faults_of(settings: "Settings") -> list[str]:
    """Faults in the settings of the cluster, a sentence each."""
    return [
        *_bad_addresses(settings),
        *_bad_ways(settings),
        *_bad_peers(settings),
        *_bad_times(settings),
        *(_bad_ports(settings) if is_clustered(settings) else ()),
        *(_without_secret(settings) if needs_secret(settings) else ()),
    ]


def _bad_addresses(settings: "Settings") -> Iterator[str]:
    readers: dict[str, Callable[[str], Any]] = {
        "raft_bind": split_address,
        "raft_advertise": check_reachable,
        "peers": parse_peers,
        "join": parse_addresses,
    }
    for name, read in readers.items():
        value = getattr(settings, name)
        if not value and name != "raft_bind":
            continue
        try:
            is_empty = read(value) in ({}, [])
        except ValueError as error:
            yield f"{_flag(name)} is {value!r}: {error}"
        else:
            if is_empty:
                yield f"{_flag(name)} is {value!r}: it names no node"


def _bad_ways(settings: "Settings") -> Iterator[str]:
    ways = [_flag(name) for name in ("bootstrap", "peers", "join", "discover") if getattr(settings, name)]
    if len(ways) > 1:
        yield f"{' and '.join(ways)} are given together: a node finds its cluster in one way; keep one of them"


def _bad_peers(settings: "Settings") -> Iterator[str]:
    peers = dict(_named(settings, "peers"))
    if peers and settings.node_id not in peers:
        yield (
            f"--node-id is {settings.node_id!r}, which --peers does not name;"
            f" it names {', '.join(peers)}: add this node or choose its --node-id among them"
        )


def _bad_times(settings: "Settings") -> Iterator[str]:
    if settings.heartbeat_interval > settings.election_timeout / 2:
        yield (
            f"--heartbeat-interval is {settings.heartbeat_interval:g} and --election-timeout"
            f" {settings.election_timeout:g}: a leader must be heard twice before it is missed;"
            f" choose a heartbeat of at most {settings.election_timeout / 2:g}"
        )


def _bad_ports(settings: "Settings") -> Iterator[str]:
    for flag, address in _addresses(settings):
        port = split_address(address)[1]
        if not port:
            yield f"{flag} is {address!r}: a node of a cluster needs a port that others can be told"
        elif port + settings.shards > PORT_MAX:
            yield (
                f"{flag} has {address!r}: {settings.shards} shards need as many ports from there on, and the last"
                f" port is {PORT_MAX}; choose one up to {PORT_MAX - settings.shards}"
            )


def _without_secret(settings: "Settings") -> Iterator[str]:
    """Every process that reaches the port of a node without a secret can control it: so it must be on loopback."""
    if settings.discover:
        yield f"--discover finds nodes on other machines and so needs a secret that all nodes share; {MAKE_SECRET}"
        return
    open_to_others = list(dict.fromkeys(flag for flag, address in _addresses(settings) if not is_loopback(address)))
    is_default = settings.raft_bind == type(settings)().raft_bind
    if open_to_others == ["--raft-bind"] and is_default:
        yield (
            f"nodes without a secret use loopback addresses only: give --raft-bind {LOOPBACK_BIND}, or for nodes on"
            f" other machines a secret; {MAKE_SECRET}"
        )
    elif open_to_others:
        verb = "are" if len(open_to_others) > 1 else "is"
        yield (
            f"{' and '.join(open_to_others)} {verb} not on loopback, and nodes without a secret use loopback addresses"
            f" only; {MAKE_SECRET}"
        )


def _addresses(settings: "Settings") -> Iterator[tuple[str, str]]:
    """Every valid address with its flag. Invalid ones are reported elsewhere."""
    for name in ("raft_bind", "raft_advertise", "peers", "join"):
        for _, address in _named(settings, name):
            yield _flag(name), address


def _named(settings: "Settings", name: str) -> list[tuple[str, str]]:
    value = getattr(settings, name)
    try:
        if name == "peers":
            return list(parse_peers(value).items())
        if name == "join":
            return [("", address) for address in parse_addresses(value)]
        if value:
            split_address(value)
    except ValueError:
        return []
    return [("", value)] if value else []


def _items(text: str) -> Iterator[str]:
    return filter(None, (part.strip() for part in text.split(",")))


def _check_item(item: str, address: str) -> None:
    try:
        check_reachable(address)
    except ValueError as error:
        raise ValueError(f"{item!r}: {error}") from None


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
