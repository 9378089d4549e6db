"""A connection over the stream: a turn is one frame, and several may be under way."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import msgspec
import websockets
from websockets.asyncio.client import ClientConnection, connect

from corvo.client.bench.links import ANSWER_S_MAX, CONNECT_S_MAX, BenchOutcome, ClaimedJob, Lost, RoundTrip, Target

PATH = "/api/v1/stream"


class _Item(msgspec.Struct):
    code: str = ""


class _Reply(msgspec.Struct):
    id: int | None
    enqueued: list[_Item] = []
    acked: list[_Item] = []
    jobs: list[ClaimedJob] = []
    code: str = ""
    retry_after_ms: int = 0


class _Ack(msgspec.Struct):
    job_id: str
    lease_token: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Reply).decode


class StreamLink:
    def __init__(self, socket: ClientConnection, worker_id: str) -> None:
        self._socket = socket
        self._worker_id = worker_id
        self._replies: dict[int, asyncio.Future[_Reply]] = {}
        self._last_id = 0
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def open(cls, target: Target, worker_id: str) -> "StreamLink":
        url = urlsplit(target.url)
        scheme = "ws" if target.secure is None else "wss"
        try:
            socket = await connect(
                f"{scheme}://{url.netloc}{url.path}{PATH}",
                compression=None,
                max_size=None,
                ping_interval=None,
                open_timeout=CONNECT_S_MAX,
                proxy=None,
                ssl=target.secure,
                additional_headers=target.headers,
            )
        except (OSError, TimeoutError, websockets.WebSocketException) as error:
            raise Lost(f"no stream at {target.url}: {error or type(error).__name__}") from None
        return cls(socket, worker_id)

    async def turn(self, turn: RoundTrip) -> BenchOutcome:
        self._last_id += 1
        number = self._last_id
        reply: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        try:
            async with asyncio.timeout(ANSWER_S_MAX + turn.wait_ms / 1000):
                await self._socket.send(self._frame(number, turn), text=True)
                return _outcome(await reply)
        except TimeoutError:
            raise Lost(f"no answer within {ANSWER_S_MAX:g} s") from None
        except websockets.WebSocketException as error:
            raise Lost(f"the stream broke: {error}") from None
        finally:
            self._replies.pop(number, None)

    def _frame(self, number: int, turn: RoundTrip) -> bytes:
        frame: dict[str, Any] = {"id": number}
        if turn.new_jobs:
            frame["enqueue"] = msgspec.Raw(b"[" + b",".join(turn.new_jobs) + b"]")
        if turn.acks:
            frame["ack"] = [_Ack(job.job_id, job.lease_token) for job in turn.acks]
        if turn.fetch:
            wanted = {"queues": turn.queues, "worker_id": self._worker_id, "count": turn.fetch}
            frame["fetch"] = {**wanted, "wait_ms": turn.wait_ms}
        return _encode(frame)

    async def _read(self) -> None:
        why = "the stream was closed"
        try:
            async for raw in self._socket:
                reply = _decode(raw)
                waiting = self._replies.get(reply.id) if reply.id is not None else None
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except (websockets.WebSocketException, msgspec.MsgspecError) as error:
            why = f"the stream broke: {error}"
        for waiting in self._replies.values():
            if not waiting.done():
                waiting.set_exception(Lost(why))

    async def close(self) -> None:
        self._reading.cancel()
        try:
            async with asyncio.timeout(1.0):
                await self._socket.close()
        except TimeoutError:
            pass


def _outcome(reply: _Reply) -> BenchOutcome:
    """A code beside results is that of the fetch; without results it is that of the frame."""
    refusals = [item.code for item in (*reply.enqueued, *reply.acked) if item.code]
    if reply.code:
        refusals.append(reply.code)
    if not refusals:
        return BenchOutcome(len(reply.enqueued), len(reply.acked), reply.jobs)
    enqueued = sum(not item.code for item in reply.enqueued)
    acked = sum(not item.code for item in reply.acked)
    return BenchOutcome(enqueued, acked, reply.jobs, refusals, reply.retry_after_ms / 1000)
