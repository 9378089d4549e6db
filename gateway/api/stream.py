"""`GET /api/v1/stream`: one WebSocket for everything a worker or producer does.

Frames are answered out of order, each under its `id`, so a waiting fetch does not delay other frames. Bounds:

- open frames, per stream and over all streams: further frames get `OVERLOADED`, and a client that does not read its
  answers is not read either
- the size of a frame: the server closes the stream with 1009
- time: the deadlines of the shards apply
- the rate of its principal: a frame beyond it gets `RATE_LIMITED`

When the credential that opened a stream is revoked, expires or gets other permissions, the stream is closed with 4401.
"""

import asyncio
from typing import Any

import structlog

from corvo.model.errors import Refusal
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.fetch import Fetch, fetched_job
from gateway.api.fetch import Fetcher
from gateway.api.frame_access import enter_frame, ids_of, needs_check
from gateway.api.frame_input import CODECS, Codec, read_frame
from gateway.api.frames import Frame, FrameAnswer, FramePlan, FrameRefused, items_of
from gateway.api.hiding import outside
from gateway.http.messages import FRAME_FAST_PATH, Receive, Request, Scope, Send, to_json
from gateway.http.rate_limits import RateLimits
from gateway.http.websocket import FrameFastPath
from gateway.shards.client import ShardCall, Shards
from gateway.shards.moved_jobs import settle
from gateway.shards.plan_executor import carry_out

PATH = "/api/v1/stream"
FRAMES_PER_STREAM = 64
FRAMES_HELD_MAX = 2 * FRAMES_PER_STREAM  # including refused frames whose answer the client has not read
FRAMES_MAX = 4_096
REST_S_MAX = 1.0
STREAMS_MAX = 4_096
REVOKED = 4401  # the close code of a stream whose credential does not hold any more
OVERLOAD_MS = 25  # per hundred open frames, about the time they need
DRAINING = FrameRefused(None, "DRAINING", "the server is stopping; open frames are still answered")

log = structlog.get_logger()


class Streams:
    """The state that all open streams share, and their shutdown."""

    def __init__(self, shards: Shards, fetching: Fetcher, rate_limits: RateLimits | None = None) -> None:
        self.shards = shards
        self.fetching = fetching
        self.rate_limits = rate_limits
        self.frames = 0
        self.is_draining = False
        self._open: set[Stream] = set()

    async def serve(self, scope: Scope, receive: Receive, send: Send, request: Request) -> None:
        """A stream whose connect message was read, and whose request was admitted."""
        wanted: list[str] = scope.get("subprotocols") or []
        protocol = next((name for name in wanted if name in CODECS), None)
        if wanted and protocol is None:
            await send({"type": "websocket.close", "code": 1002, "reason": f"supported: {', '.join(CODECS)}"})
            return
        if self.is_draining or len(self._open) >= STREAMS_MAX:
            await send({"type": "websocket.close", "code": 1013, "reason": "try again later"})
            return
        fast_path: FrameFastPath | None = scope.get("state", {}).get(FRAME_FAST_PATH)
        codec = CODECS[protocol or "corvo.json.v1"]
        stream = Stream(self, receive, send, codec, request, fast_path)
        self._open.add(stream)
        try:
            await send({"type": "websocket.accept", "subprotocol": protocol})
            await stream.run()
        finally:
            self._open.discard(stream)
            if fast_path is not None:
                fast_path.end()

    def drain(self) -> None:
        """Announces the shutdown to every client; each stream closes when its frames are answered."""
        self.is_draining = True
        for stream in self._open:
            stream.drain()


class Stream:
    def __init__(
        self,
        streams: Streams,
        receive: Receive,
        send: Send,
        codec: Codec,
        request: Request,
        fast_path: FrameFastPath | None = None,
    ) -> None:
        """With a fast path, plain frames and answers bypass the server. Without one, the server handles all of them."""
        self._streams = streams
        self._request = request
        self._principal = request.principal
        self._context = request.context
        self._needs_check = needs_check(request.principal)
        self._is_revoked = False
        self._codec = codec
        self._receive = receive
        self._send = send
        self._fast_path = fast_path
        self._rests_until = 0.0  # in the loop's time
        if fast_path is not None:
            fast_path.open(self._take, self._rest)
        self._running: set[asyncio.Task[None]] = set()
        self._gone = asyncio.Event()

    async def run(self) -> None:
        admission = self._request.admission
        watch = None if admission is None else asyncio.ensure_future(admission.over())
        if watch is not None:
            watch.add_done_callback(self._revoke)
        try:
            while True:
                message = await self._receive()
                if message["type"] != "websocket.receive":
                    return
                self._take(message.get("bytes") or (message.get("text") or "").encode())
                await self._rest()
                if len(self._running) >= FRAMES_HELD_MAX:  # a client that does not read its refusals
                    await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if watch is not None:
                watch.cancel()
            self._gone.set()
            for task in list(self._running):
                task.cancel()

    def _revoke(self, watch: "asyncio.Future[None]") -> None:
        if watch.cancelled():
            return
        self._is_revoked = True
        self._gone.set()  # ends waiting fetches
        asyncio.ensure_future(self._close_revoked()).add_done_callback(self._ended)

    async def _close_revoked(self) -> None:
        if self._fast_path is not None:
            self._fast_path.abort_later()  # a client that does not close is cut off
        await self._send({"type": "websocket.close", "code": REVOKED, "reason": "the key was revoked"})

    def drain(self) -> None:
        self._start(self._drain())

    async def _drain(self) -> None:
        await self._answer(DRAINING)
        others = self._running - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        if self._fast_path is not None:
            self._fast_path.flush()
        await self._send({"type": "websocket.close", "code": 1001, "reason": "the server is stopping"})

    def _take(self, raw: bytes) -> None:
        if self._is_revoked:
            return
        frame = read_frame(self._codec, raw)
        if isinstance(frame, FrameRefused):
            self._start(self._answer(frame))
            return
        streams = self._streams
        if len(self._running) >= FRAMES_PER_STREAM or streams.frames >= FRAMES_MAX:
            wait_ms = OVERLOAD_MS * (1 + streams.frames // 100)
            self._rests_until = max(self._rests_until, asyncio.get_running_loop().time() + wait_ms / 1000)
            self._start(self._answer(FrameRefused(frame.id, "OVERLOADED", "too many open frames", wait_ms)))
            return
        if streams.rate_limits is not None:
            try:
                streams.rate_limits.admit_frame(self._request, items_of(frame))
            except Refusal as refusal:
                self._refuse(frame, refusal)
                return
        self._start(self._serve(frame))

    def _refuse(self, frame: Frame, refusal: Refusal) -> None:
        pause_s = refusal.retry_after_ms / 1000
        self._rests_until = max(self._rests_until, asyncio.get_running_loop().time() + pause_s)
        self._start(self._answer(FrameRefused(frame.id, refusal.code, refusal.message, refusal.retry_after_ms)))

    async def _rest(self) -> None:
        """After an `OVERLOADED` or `RATE_LIMITED`, does not read the stream for as long as its client was told to wait.
        A refusal costs time too: a client that ignores the hint must not slow down the others."""
        rest_s = self._rests_until - asyncio.get_running_loop().time()
        if rest_s > 0:
            await asyncio.sleep(min(rest_s, REST_S_MAX))

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a frame failed", error=repr(error))

    async def _serve(self, frame: Frame) -> None:
        self._streams.frames += 1
        try:
            await self._answer(await self._ask(frame))
        except Refusal as refusal:
            await self._answer(FrameRefused(frame.id, refusal.code, refusal.message, refusal.retry_after_ms))
        finally:
            self._streams.frames -= 1

    async def _ask(self, frame: Frame) -> FrameAnswer:
        streams = self._streams
        if self._needs_check:
            enter_frame(frame, self._principal)
        context = self._context
        if self._principal.queue_scope:
            context = context.hiding(await outside(streams.shards, context, ids_of(frame)))
        plan = FramePlan(context, frame)
        calls = [streams.shards.ask(shard, operation) for shard, operation in plan.calls]
        if not plan.separate:
            return await self._gather(plan, calls, None)
        separate = asyncio.gather(*(carry_out(streams.shards, one) for one in plan.separate), return_exceptions=True)
        try:
            return await self._gather(plan, calls, separate)
        finally:
            separate.cancel()  # the client may have disconnected during the wait

    async def _gather(
        self, plan: FramePlan, calls: list[ShardCall], separate: "asyncio.Future[list[Any]] | None"
    ) -> FrameAnswer:
        streams = self._streams
        fetch = plan.fetch
        begun: ShardCall | None = None
        # On one shard, the fetch follows the operations in the same message; else they are awaited first.
        if isinstance(fetch, Fetch) and separate is None and _is_near(plan, fetch, len(streams.shards)):
            fetch.is_after_operations = bool(calls)
            begun = streams.fetching.begin(fetch)
        results = await settle(streams.shards, calls)
        results_separate = [] if separate is None else await separate
        if not isinstance(fetch, Fetch):
            return plan.conclude(results, results_separate, fetch)
        try:
            if begun is not None:
                claimed = await streams.fetching.finish(begun, self._hung_up)
            else:
                claimed = await streams.fetching.fetch(fetch, self._hung_up)
        except Refusal as refusal:
            return plan.conclude(results, results_separate, refusal)
        return plan.conclude(results, results_separate, [fetched_job(job) for job in claimed])

    async def _hung_up(self) -> None:
        await self._gone.wait()

    async def _answer(self, answer: FrameAnswer | FrameRefused) -> None:
        if self._is_revoked:
            return
        raw = self._codec.from_json(to_json(answer))
        if self._fast_path is None:
            await self._send({"type": "websocket.send", "bytes": raw})
        else:
            self._fast_path.send(raw)
            await self._fast_path.drained()


def _is_near(plan: FramePlan, fetch: Fetch, shard_count: int) -> bool:
    places = {shard_of_queue(queue, shard_count) for queue in fetch.queues}
    return all(shard in places for shard, _ in plan.calls)
