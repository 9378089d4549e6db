"""A proxy between a library and the server that refuses requests, or loses them, as a scenario says.

It forwards bytes. Only the first line of each request matters to it: where one matches a fault, the request is answered
here, or its connection is cut before or after the server had it.
"""

import asyncio
import re
import threading
from collections.abc import Coroutine
from typing import Any

from sdk.conformance.scenario import Fault

HOST = "127.0.0.1"
HEAD_BYTES_MAX = 64 * 1024
STOP_S = 10.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


class FaultProxy:
    """Listens on a port of its own, in a thread of its own."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._faults: list[tuple[re.Pattern[str], Fault]] = []
        self._lock = threading.Lock()
        self.used = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fault proxy", daemon=True)
        self._started = threading.Event()

    def __enter__(self) -> "FaultProxy":
        self._thread.start()
        if not self._started.wait(STOP_S):
            raise RuntimeError("the proxy does not listen")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_S)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append((re.compile(fault.match), fault))

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
            self.used = 0

    def _take(self, line: str) -> Fault | None:
        with self._lock:
            for place, (pattern, fault) in enumerate(self._faults):
                if pattern.search(line):
                    fault.times -= 1
                    self.used += 1
                    if not fault.times:
                        del self._faults[place]
                    return fault
        return None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._started.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._meet, HOST, 0, limit=HEAD_BYTES_MAX)
        self.port = server.sockets[0].getsockname()[1]

    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Coroutine[Any, Any, None]:
        return self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client: request after request, until one opens a stream or is cut."""
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        answers: asyncio.Task[None] | None = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                fault = self._take(head.partition(b"\r\n")[0].decode("latin-1"))
                if fault is not None and fault.status:
                    writer.write(_refusal(fault))
                    await writer.drain()
                    continue
                if fault is not None and fault.cut == "before":
                    return
                if far is None:
                    far = await asyncio.open_connection(HOST, self._server_port)
                if answers is None and fault is None:
                    answers = asyncio.create_task(_copy(far[0], writer))
                far[1].write(head + body)
                await far[1].drain()
                if fault is not None:  # the server has it, and nobody hears of it
                    if answers is not None:
                        answers.cancel()
                        await asyncio.gather(answers, return_exceptions=True)
                    answer = await far[0].readuntil(b"\r\n\r\n")
                    if fault.cut == "midway":
                        writer.write(answer + await far[0].readuntil(b"data:") + await far[0].readuntil(b"\n\n"))
                        await writer.drain()
                        writer.close()  # what was written arrives; then the connection is at its end
                        await writer.wait_closed()
                    return
                if b"\r\nupgrade: websocket\r\n" in head.lower():
                    await _copy(reader, far[1])
                    return
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            if answers is not None:
                answers.cancel()
            for end in (writer, None if far is None else far[1]):
                if end is not None:
                    end.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(HEAD_BYTES_MAX):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    writer.transport.close()


def _refusal(fault: Fault) -> bytes:
    code = {429: "OVERLOADED", 503: "SHARD_UNAVAILABLE"}.get(fault.status, "INTERNAL_ERROR")
    body = b'{"error":"as the scenario says","code":"%b"}' % code.encode()
    wait = b"" if fault.retry_after_s is None else b"retry-after: %.3f\r\n" % fault.retry_after_s
    return b"HTTP/1.1 %d \r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n%b" % (
        fault.status,
        wait,
        len(body),
        body,
    )
