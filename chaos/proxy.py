"""TCP proxies between the nodes of a cluster: real partitions, without root.

Each direction between two nodes has a proxy per shard. A cut proxy reads no bytes from either end, keeps connections
open, and lets new ones hang, like a network that drops packets. After the cut is healed, bytes in flight arrive late,
as with TCP.
"""

import asyncio
import threading
from collections.abc import Coroutine
from itertools import permutations
from typing import Any, TypeVar

from chaos.ports import HOST, free_ports
from corvo.runtime.addresses import split_address

CHUNK_BYTES = 64 * 1024
CLOSE_S = 10.0

Way = tuple[str, str]  # from, to
R = TypeVar("R")


class Gate:
    """One direction between two nodes: a listener for each shard, which can be blocked."""

    def __init__(self, port: int, address: str, shards: int) -> None:
        """Listens on `shards` ports from `port` on, and connects to as many from the port of `address` on."""
        self.port = port
        self._host, self._port = split_address(address)
        self._shards = shards
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> None:
        for shard in range(self._shards):
            self._servers.append(await self._listen(shard))

    async def _listen(self, shard: int) -> asyncio.Server:
        def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Coroutine[Any, Any, None]:
            return self._join(reader, writer, self._port + shard)

        return await asyncio.start_server(meet, HOST, self.port + shard, limit=CHUNK_BYTES)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        try:
            await self._is_open.wait()
            far_reader, far_writer = await asyncio.open_connection(self._host, port, limit=CHUNK_BYTES)
        except OSError:
            writer.close()
            return
        except asyncio.CancelledError:
            writer.transport.abort()
            return
        there = asyncio.create_task(self._pass(reader, far_writer))
        back = asyncio.create_task(self._pass(far_reader, writer))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        writer.transport.abort()
        far_writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Returns when an end disconnects, unless the direction is cut: then nobody can notice."""
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                await self._is_open.wait()
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass
        await self._is_open.wait()

    def cut(self) -> None:
        self._is_open.clear()

    def heal(self) -> None:
        self._is_open.set()

    def end_listening(self) -> None:
        for server in self._servers:
            server.close()


class Proxies:
    """A gate for every direction between the nodes, served by its own thread until `close`."""

    def __init__(self, nodes: dict[str, str], shards: int) -> None:
        """`nodes` maps names to real addresses."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()
        self._gates: dict[Way, Gate] = {}
        try:
            self._run(self._open(nodes, shards))
        except BaseException:
            self.close()
            raise

    async def _open(self, nodes: dict[str, str], shards: int) -> None:
        ways = list(permutations(nodes, 2))
        for (near, far), port in zip(ways, free_ports(shards, len(ways)), strict=True):
            gate = self._gates[near, far] = Gate(port, nodes[far], shards)
            await gate.listen()

    def addresses_for(self, node: str) -> dict[str, str]:
        """The proxy addresses through which this node reaches the others."""
        return {far: f"{HOST}:{gate.port}" for (near, far), gate in self._gates.items() if near == node}

    def cut(self, near: str, far: str) -> None:
        """Blocks the direction from `near` to `far`."""
        self._loop.call_soon_threadsafe(self._gates[near, far].cut)

    def heal(self) -> None:
        """Opens every direction again."""
        for gate in self._gates.values():
            self._loop.call_soon_threadsafe(gate.heal)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._run(self._close_all())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSE_S)
            if not self._thread.is_alive():
                self._loop.close()

    async def _close_all(self) -> None:
        for gate in self._gates.values():
            gate.end_listening()
        # This loop runs nothing else. Repeated, because a connection just accepted may get its task only now.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CLOSE_S)
