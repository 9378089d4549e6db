"""Where the nodes of a local cluster live: their names and ports, remembered in `local.json`.

The ports between nodes are part of what the cluster has agreed on, so a second start must find the first one's.
"""

import random
import time
from pathlib import Path
from typing import Annotated

import msgspec

from corvo.cli.supervise.ports import NoPorts, free_row, listen_once
from corvo.cli.supervise.server import CannotStart
from corvo.runtime.addresses import PORT_MAX

HOST = "127.0.0.1"
NODES_DEFAULT, SHARDS_DEFAULT = 3, 4
PORTS_S = 5.0  # how long nodes of a killed `corvo local` may take to leave their ports
LOOK_AGAIN_S = 0.1
TRIES_MAX = 100


class LayoutOptions(msgspec.Struct, frozen=True):
    """Options of the command line; None: what the directory has, or the default."""

    data_dir: str
    nodes: int | None = None
    shards: int | None = None
    port: int | None = None
    raft_port: int | None = None
    fsync: str = "on"
    tls_cert: str = ""
    tls_key: str = ""


class NodePlace(msgspec.Struct, frozen=True):
    """One node."""

    node_id: str
    port: int
    raft_port: int

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def raft_address(self) -> str:
        return f"{HOST}:{self.raft_port}"


class Layout(msgspec.Struct, frozen=True):
    shards: int
    nodes: Annotated[list[NodePlace], msgspec.Meta(min_length=1)]

    @property
    def peers(self) -> str:
        return ",".join(f"{place.node_id}={place.raft_address}" for place in self.nodes)


def settle(data_dir: Path, wishes: LayoutOptions, dice: random.Random) -> Layout:
    """The layout of this directory, made when it is new; its ports are free."""
    path = data_dir / "local.json"
    known = _read(path)
    layout = _new(wishes, dice) if known is None else _again(known, wishes, data_dir)
    _check_ports(layout, 0.0 if known is None else PORTS_S)
    if layout != known:
        draft = path.with_suffix(".new")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(layout)) + b"\n")
        draft.replace(path)
    return layout


def _read(path: Path) -> Layout | None:
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Layout)
    except (OSError, msgspec.MsgspecError) as error:
        raise CannotStart(f"{path} cannot be read: {error}; restore it or use another --data-dir") from None


def _new(wishes: LayoutOptions, dice: random.Random) -> Layout:
    nodes, shards = wishes.nodes or NODES_DEFAULT, wishes.shards or SHARDS_DEFAULT
    http = _row("--port", wishes.port, nodes)
    raft = _row("--raft-port", wishes.raft_port, nodes * shards)
    raft = raft or _free_row(nodes * shards, http, dice)
    http = http or _free_row(nodes, raft, dice)
    return Layout(
        shards, [NodePlace(f"node-{number + 1}", http[number], raft[number * shards]) for number in range(nodes)]
    )


def _again(known: Layout, wishes: LayoutOptions, data_dir: Path) -> Layout:
    nodes, first = len(known.nodes), known.nodes[0]
    if wishes.nodes not in (None, nodes) or wishes.shards not in (None, known.shards):
        raise CannotStart(
            f"{data_dir} was made with {nodes} nodes and {known.shards} shards; start with --nodes {nodes}"
            f" --shards {known.shards} or use another --data-dir"
        )
    if wishes.raft_port not in (None, first.raft_port):
        raise CannotStart(
            f"the nodes of {data_dir} know each other from port {first.raft_port} on; start with"
            f" --raft-port {first.raft_port} or use another --data-dir"
        )
    http = _row("--port", wishes.port, nodes) or [place.port for place in known.nodes]
    moved = [msgspec.structs.replace(place, port=port) for place, port in zip(known.nodes, http, strict=True)]
    return Layout(known.shards, moved)


def _row(flag: str, first: int | None, count: int) -> range | None:
    if first is None:
        return None
    if first + count - 1 > PORT_MAX:
        raise CannotStart(f"{flag} is {first}: {count} ports are needed from there on; choose a lower one")
    return range(first, first + count)


def _free_row(count: int, avoid: range | None, dice: random.Random) -> range:
    try:
        for _ in range(TRIES_MAX):
            first = free_row(HOST, count, dice)
            if not _meet(range(first, first + count), avoid):
                return range(first, first + count)
    except NoPorts as error:
        raise CannotStart(f"{error}; start fewer nodes or shards") from None
    raise CannotStart(f"no {count} ports in a row are free on {HOST}; start fewer nodes or shards")


def _meet(one: range, other: range | None) -> bool:
    return other is not None and one.start < other.stop and other.start < one.stop


def _check_ports(layout: Layout, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    wanted: set[int] = set()
    for place in layout.nodes:
        for port in (place.port, *range(place.raft_port, place.raft_port + layout.shards)):
            if port in wanted:
                raise CannotStart(
                    f"port {port} is wanted for HTTP and between nodes; choose another --port or --raft-port"
                )
            wanted.add(port)
            while (reason := _why_taken(port)) is not None:
                if time.monotonic() > deadline:
                    flag = "--port" if port == place.port else "--raft-port" if patience_s == 0 else "--data-dir"
                    raise CannotStart(
                        f"cannot listen on {HOST}:{port} for {place.node_id}: {reason};"
                        f" stop the program that uses it, or choose another {flag}"
                    )
                time.sleep(LOOK_AGAIN_S)


def _why_taken(port: int) -> str | None:
    try:
        listen_once(HOST, port)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None
