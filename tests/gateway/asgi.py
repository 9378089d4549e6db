"""The gateway without a server: a request as ASGI messages, the whole application over fake shards.

`House` holds one event loop for its life, so that a test calls it like a function: `house.post("/enqueue", {...})`.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from corvo.endpoint import Answer, PlanContext
from corvo.model.ids import Minter
from corvo.ops.jobs.fetch import FetchBatchBody, FetchBody, FetchedBatch, fetched_job, new_fetch
from corvo.queries.cluster import ServerInfo
from gateway.access.guard import Guard, Policy
from gateway.access.login import Login
from gateway.access.registry import Registry
from gateway.api.fetch import Fetcher
from gateway.api.stream import Streams
from gateway.app import ENDPOINTS, Gateway
from gateway.http.messages import Receive, Request, Scope, Send
from gateway.http.rate_limits import RateLimits
from gateway.metrics import Metrics
from tests.gateway.fake_shards import FakeShards
from tests.support.builders import NOW, Clock

JSON = (b"content-type", b"application/json")
PAYLOAD_BYTES_MAX = 1_000
OFF = Policy("off")


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.content)

    @property
    def code(self) -> str:
        return str(self.json["code"])


def a_scope(
    method: str = "POST",
    path: str = "/api/v1/enqueue",
    headers: list[tuple[bytes, bytes]] | None = None,
    **fields: Any,
) -> Scope:
    return {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [JSON] if headers is None else headers,
        "client": ("127.0.0.1", 1),
    } | fields


def parts(*chunks: bytes, then: Callable[[], Awaitable[Any]] | None = None) -> Receive:
    """A body that arrives in these chunks; afterwards `then` decides (silence for ever unless told otherwise)."""
    left = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks or (b"",)]
    left[-1]["more_body"] = False

    async def receive() -> Any:
        if left:
            return left.pop(0)
        return await (then or _silence)()

    return receive


async def _silence() -> None:
    await asyncio.Event().wait()


async def call(app: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope, receive: Receive) -> Reply:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"], sent
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert len(headers) == len(sent[0]["headers"]), "a header twice"
    return Reply(sent[0]["status"], headers, sent[1].get("body", b""))


async def a_page(scope: Scope, receive: Receive, send: Send) -> None:
    """What stands for the pages: found at /docs, nowhere else."""
    status = 200 if scope["path"] == "/docs" else 404
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"6")]})
    await send({"type": "http.response.body", "body": b"a page"})


class Draining(asyncio.Event):
    """Setting it is what a signal does: the waits that know of it end."""

    def __init__(self) -> None:
        super().__init__()
        self.fetchings: list[Fetcher] = []

    def set(self) -> None:
        if not self.is_set():
            super().set()
            for fetching in self.fetchings:
                fetching.drain()


def a_registry(shards: FakeShards) -> Registry:
    return Registry(lambda ask, timeout_s: shards.ask(0, ask, timeout_s=timeout_s))


def a_gateway(
    shards: FakeShards,
    draining: Draining,
    metrics: Metrics,
    pages: Any = a_page,
    policy: Policy = OFF,
    rate_limits: RateLimits | None = None,
) -> Gateway:
    clock = Clock([NOW])
    mint = Minter(clock, 0xABCDE)
    fetching = Fetcher(shards, draining)  # type: ignore[arg-type]  # stands in for Shards
    draining.fetchings.append(fetching)

    async def fetch(body: FetchBody, request: Request) -> Answer:
        claimed = await fetching.fetch(new_fetch(body, mint.claim_id(), 1), request.hung_up)
        return Answer(200, fetched_job(claimed[0])) if claimed else Answer(204, None)

    async def fetch_batch(body: FetchBatchBody, request: Request) -> Answer:
        claimed = await fetching.fetch(new_fetch(body, mint.claim_id(), body.count), request.hung_up)
        return Answer(200, FetchedBatch([fetched_job(job) for job in claimed]))

    async def elsewhere(body: Any, request: Request) -> Answer:
        return Answer(200, ServerInfo("1", "1"))

    context = PlanContext(len(shards), PAYLOAD_BYTES_MAX, mint, clock, dice=os.urandom)
    registry = a_registry(shards)
    guard = Guard(context, registry, policy, clock_ns=clock)
    return Gateway(
        shards,  # type: ignore[arg-type]
        guard,
        dict.fromkeys((endpoint.name for endpoint in ENDPOINTS if endpoint.plan is None), elsewhere)
        | {"fetch": fetch, "fetch_batch": fetch_batch}
        | Login(guard, is_secure=False).by_name(),
        pages,
        metrics,
        Streams(shards, fetching, rate_limits),  # type: ignore[arg-type]
        rate_limits=rate_limits,
        registry=registry,
    )


class House:
    """The application over fake shards, and a loop to run it in. A context: leave it, and the loop is closed."""

    def __init__(
        self,
        shard_count: int = 4,
        pages: Any = a_page,
        policy: Policy = OFF,
        rate_limits: RateLimits | None = None,
    ) -> None:
        self.runner = asyncio.Runner()
        self.shards = FakeShards(shard_count)
        self.metrics = Metrics()
        self.draining = Draining()
        self.app = a_gateway(self.shards, self.draining, self.metrics, pages, policy, rate_limits)

    def __enter__(self) -> "House":
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()

    def ask(self, scope: Scope, *chunks: bytes) -> Reply:
        """One request. Whatever it holds, it is answered in the shape of answers, and never as our fault."""
        reply = self.runner.run(call(self.app, scope, parts(*chunks)))
        check_shape(reply)
        return reply

    def post(self, path: str, body: Any = None) -> Reply:
        content = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        return self.ask(a_scope("POST", "/api/v1" + path), content)

    def get(self, path: str) -> Reply:
        return self.ask(a_scope("GET", "/api/v1" + path, []))

    # What most tests begin with

    def enqueue(self, queue: str = "mail", **fields: Any) -> str:
        reply = self.post("/enqueue", {"queue": queue, **fields})
        assert reply.status == 201, reply
        return str(reply.json["job_id"])

    def fetch(self, *queues: str, **fields: Any) -> Any:
        reply = self.post("/fetch", {"queues": queues or ("mail",), "worker_id": "w1", "timeout": 0, **fields})
        assert reply.status == 200, reply
        return reply.json


def check_shape(reply: Reply) -> None:
    assert reply.status < 500 or reply.status == 505, reply
    assert reply.headers["server-timing"].startswith("proc;dur=")
    if reply.status == 204:
        assert reply.content == b""
        assert "content-length" not in reply.headers
    elif reply.status >= 400 and reply.headers.get("content-type") == "application/json":
        told = reply.json
        assert set(told) <= {"error", "code", "field", "retry_after_ms"}
        assert told["error"]
        assert told["code"] == told["code"].upper()
