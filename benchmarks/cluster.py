"""A cluster of three real servers on this machine."""

import random
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import msgspec

from benchmarks.load import connect, get, on_uvloop
from benchmarks.node import Node
from corvo.cli.supervise.ports import free_row

HOST = "127.0.0.1"


class Group(msgspec.Struct):
    shard: int
    leader_id: str
    term: int


class Status(msgspec.Struct):
    groups: list[Group]


_decode_status = msgspec.json.Decoder(Status).decode


class Cluster:
    """The constructor starts it and waits until all nodes are healthy."""

    def __init__(self, folder: Path, shards: int, *flags: str, count: int = 3) -> None:
        self.shards = shards
        first = free_row(HOST, count * shards, random.Random())
        addresses = [f"{HOST}:{first + number * shards}" for number in range(count)]
        self._names = [f"node-{number + 1}" for number in range(count)]
        peers = ",".join(f"{name}={address}" for name, address in zip(self._names, addresses, strict=True))
        self._flags = {
            name: ("--node-id", name, "--raft-bind", address, "--peers", peers, "--shards", str(shards), *flags)
            for name, address in zip(self._names, addresses, strict=True)
        }
        self._folder = folder
        self.nodes: dict[str, Node] = {}
        self._running = ExitStack()
        self._running.callback(self._stop)
        try:
            for name in self._names:
                self.start(name)
            self.await_healthy()
        except BaseException:
            self._running.close()
            raise

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._running.close()

    def start(self, name: str) -> None:
        self.nodes[name] = Node(self._folder / name, *self._flags[name], is_awaited=False)

    def await_healthy(self) -> None:
        for node in self.nodes.values():
            node.await_healthy()

    def leaders(self, asked: Node) -> list[str]:
        """The leader of each shard, as one node knows it; empty if there is none."""
        return [group.leader_id for group in on_uvloop(_status(asked)).groups]

    def terms(self, asked: Node) -> list[int]:
        return [group.term for group in on_uvloop(_status(asked)).groups]

    def _stop(self) -> None:
        for node in self.nodes.values():
            node.stop()


async def _status(node: Node) -> Status:
    connection = await connect(node.address)
    try:
        return _decode_status(await connection.require(get("/api/v1/cluster/status")))
    finally:
        connection.close()
