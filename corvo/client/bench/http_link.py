"""A connection over HTTP/1.1, lean: a load generator must not be what is measured. A turn is up to three requests.

Batches go by the batch routes, single jobs by the plain ones.
"""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import msgspec

from corvo.client.bench.links import ANSWER_S_MAX, CONNECT_S_MAX, BenchOutcome, ClaimedJob, Lost, RoundTrip, Target
from corvo.client.calls import PREFIX


class _Refused(msgspec.Struct):
    code: str = ""
    retry_after_ms: int = 0


class _HttpItem(msgspec.Struct):
    code: str = ""


class _Enqueued(msgspec.Struct):
    job_ids: list[str]


class _Acked(msgspec.Struct):
    results: list[_HttpItem]


class _Fetched(msgspec.Struct):
    jobs: list[ClaimedJob]


class _HttpAck(msgspec.Struct):
    job_id: str
    lease_token: int


class _Answer(msgspec.Struct):
    status: int
    body: bytes

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


_encode = msgspec.json.Encoder().encode


class HttpLink(asyncio.Protocol):
    def __init__(self, host: str, path: str, worker_id: str, headers: dict[str, str]) -> None:
        named = {"host": host, "content-type": "application/json", **headers}
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in named.items()).encode("latin-1")
        self._path = path
        self._worker_id = worker_id
        self._buffer = b""
        self._transport: Any = None
        self._waiting: asyncio.Future[_Answer] | None = None
        self._lost = ""

    @classmethod
    async def open(cls, target: Target, worker_id: str) -> "HttpLink":
        url = urlsplit(target.url)
        port = url.port or (443 if target.secure else 80)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                _, link = await loop.create_connection(
                    lambda: cls(url.netloc, url.path, worker_id, target.headers),
                    url.hostname or "",
                    port,
                    ssl=target.secure,
                )
        except (OSError, TimeoutError) as error:
            raise Lost(f"no connection to {target.url}: {error or type(error).__name__}") from None
        return link

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = f"the connection broke: {error or 'closed by the server'}"
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Lost(self._lost))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _content_length(self._buffer[:head])
        end = head + 4 + length
        if len(self._buffer) < end:
            return
        answer = _Answer(int(self._buffer[9:12]), self._buffer[head + 4 : end])
        self._buffer = self._buffer[end:]
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)

    # What the engine calls

    async def turn(self, turn: RoundTrip) -> BenchOutcome:
        enqueued = acked = 0
        refusals: list[str] = []
        jobs: list[ClaimedJob] = []
        for step in (self._enqueue, self._ack, self._fetch):
            done = await step(turn)
            enqueued, acked, jobs = enqueued + done.enqueued, acked + done.acked, done.jobs or jobs
            refusals += done.refusals
            if done.retry_after_s:
                return BenchOutcome(enqueued, acked, jobs, refusals, done.retry_after_s)
        return BenchOutcome(enqueued, acked, jobs, refusals)

    async def close(self) -> None:
        self._transport.close()

    async def _enqueue(self, turn: RoundTrip) -> BenchOutcome:
        if not turn.new_jobs:
            return BenchOutcome()
        if len(turn.new_jobs) == 1:
            answer = await self._post("/enqueue", turn.new_jobs[0])
            return BenchOutcome(enqueued=1) if answer.is_good else _refused(answer)
        answer = await self._post("/enqueue/batch", b'{"jobs":[' + b",".join(turn.new_jobs) + b"]}")
        if not answer.is_good:
            return _refused(answer)
        return BenchOutcome(enqueued=len(msgspec.json.decode(answer.body, type=_Enqueued).job_ids))

    async def _ack(self, turn: RoundTrip) -> BenchOutcome:
        if not turn.acks:
            return BenchOutcome()
        if len(turn.acks) == 1:
            (job,) = turn.acks
            answer = await self._post(f"/ack/{job.job_id}", b'{"lease_token":%d}' % job.lease_token)
            return BenchOutcome(acked=1) if answer.is_good else _refused(answer)
        acks = [_HttpAck(job.job_id, job.lease_token) for job in turn.acks]
        answer = await self._post("/ack/batch", _encode({"acks": acks}))
        if not answer.is_good:
            return _refused(answer)
        refusals = [one.code for one in msgspec.json.decode(answer.body, type=_Acked).results if one.code]
        return BenchOutcome(acked=len(acks) - len(refusals), refusals=refusals)

    async def _fetch(self, turn: RoundTrip) -> BenchOutcome:
        if not turn.fetch:
            return BenchOutcome()
        wanted = {"queues": turn.queues, "worker_id": self._worker_id, "timeout": turn.wait_ms / 1000}
        if turn.fetch == 1:
            answer = await self._post("/fetch", _encode(wanted), turn.wait_ms)
            if not answer.is_good:
                return _refused(answer)
            return BenchOutcome(jobs=[msgspec.json.decode(answer.body, type=ClaimedJob)] if answer.body else [])
        answer = await self._post("/fetch/batch", _encode({**wanted, "count": turn.fetch}), turn.wait_ms)
        if not answer.is_good:
            return _refused(answer)
        return BenchOutcome(jobs=msgspec.json.decode(answer.body, type=_Fetched).jobs)

    async def _post(self, path: str, body: bytes, wait_ms: int = 0) -> _Answer:
        if self._lost:
            raise Lost(self._lost)
        self._waiting = asyncio.get_running_loop().create_future()
        head = b"POST %s HTTP/1.1\r\n%scontent-length: %d\r\n\r\n"
        self._transport.write(head % (f"{self._path}{PREFIX}{path}".encode(), self._headers, len(body)) + body)
        try:
            async with asyncio.timeout(ANSWER_S_MAX + wait_ms / 1000):
                return await self._waiting
        except TimeoutError:
            self._transport.abort()
            raise Lost(f"no answer within {ANSWER_S_MAX:g} s") from None
        finally:
            self._waiting = None


def _refused(answer: _Answer) -> BenchOutcome:
    try:
        refused = msgspec.json.decode(answer.body, type=_Refused)
    except msgspec.MsgspecError:
        refused = _Refused()
    return BenchOutcome(refusals=[refused.code or f"HTTP {answer.status}"], retry_after_s=refused.retry_after_ms / 1000)


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
    return 0  # 204 has none; our server sends no chunks to these routes
