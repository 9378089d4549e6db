"""The application: checks → route → body as struct → plan → shards → answer.

The API of jobs is plain ASGI, without request objects or middleware, because it is the hot path. Pages for people and
tools (docs, metrics, health) are a Starlette application behind it.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog

from corvo import ops, queries
from corvo.endpoint import Answer, Endpoint
from corvo.model.errors import Refusal
from corvo.model.json_input import decode_body
from corvo.model.name_fields import NameKind, ids_in
from gateway.access.auditing import Auditing
from gateway.access.confinement import require_confined
from gateway.access.credentials import refused
from gateway.access.guard import Guard
from gateway.access.names import enter_body, enter_path
from gateway.access.redaction import SHOWING, Curtain
from gateway.access.registry import Registry
from gateway.api.hiding import outside
from gateway.api.stream import PATH as STREAM_PATH
from gateway.api.stream import Streams
from gateway.http.cors import Cors, options
from gateway.http.messages import (
    METHODS,
    Disconnected,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    Streaming,
    parse_query,
    require_json,
)
from gateway.http.rate_limits import RateLimits
from gateway.metrics import Metrics
from gateway.pages import METRICS_PATHS, METRICS_UNDER_API, PAGE_ACCESS, SEES_DETAILS
from gateway.routes import API, Handler, Match, Routes, unknown_path
from gateway.shards.client import Shards
from gateway.shards.plan_executor import carry_out

ENDPOINTS: tuple[Endpoint, ...] = (*ops.ENDPOINTS, *queries.ENDPOINTS)
REQUESTS_MAX = 20_000
PAGE_METHODS = ["GET", "HEAD", "OPTIONS"]

log = structlog.get_logger()


class Gateway:
    def __init__(
        self,
        shards: Shards,
        guard: Guard,
        handlers: dict[str, Handler],
        pages: Callable[[Scope, Receive, Send], Awaitable[None]],
        metrics: Metrics,
        streams: Streams,
        cors: Cors | None = None,
        rate_limits: RateLimits | None = None,
        registry: Registry | None = None,
        auditing: Auditing | None = None,
        curtain: Curtain | None = None,
    ) -> None:
        self._curtain = curtain or Curtain()
        self._cors = cors or Cors()
        self._rate_limits = rate_limits
        self._registry = registry
        self._auditing = auditing
        self._shards = shards
        self._streams = streams
        self._guard = guard
        self._handlers = handlers
        self._pages = pages
        self._metrics = metrics
        self._routes = Routes(ENDPOINTS)
        unserved = [e.name for e in ENDPOINTS if e.plan is None and e.name not in handlers]
        assert not unserved, f"no handler serves {unserved}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._serve_stream(scope, receive, send)
        else:
            await _lifespan(receive, send)

    async def _serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        if scope["path"] != STREAM_PATH:
            await send({"type": "websocket.close", "code": 1008, "reason": f"the stream is at {STREAM_PATH}"})
            return
        request = Request({"method": "GET", **scope}, receive)
        try:
            await self._guard.admit(request)
        except Refusal as refusal:
            await refuse_stream(request, scope, send, refusal)
            return
        await self._streams.serve(scope, receive, send, request)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await self.attend(request, Response(request, send))

    async def attend(self, request: Request, response: Response) -> None:
        """Serve one request, from the server or from the fast path (`gateway/http/fast_path.py`)."""
        metrics = self._metrics
        metrics.in_flight += 1
        auditing = self._auditing
        route = "unmatched"
        try:
            if self._cors.is_on:
                response.headers = self._cors.headers(request)
            request.check()
            if metrics.in_flight > REQUESTS_MAX:
                raise Refusal("OVERLOADED", "too many requests at once; retry", retry_after_ms=1_000)
            if request.method == "OPTIONS":
                route = "options"
                await response.send(200, b"", None, options(self._methods_of(request.path)))
                return
            if not request.path.startswith(API) or request.path == METRICS_UNDER_API:
                route = "page"
                await self._enter_page(request)
                await request.hand_on(self._pages, response.relay)
                return
            match = await self._enter(request)
            endpoint = match.endpoint
            route = endpoint.path
            principal = request.principal
            body = await request.body()
            if self._rate_limits is not None:  # after the body, so that the connection stays usable
                self._rate_limits.admit(request)
            request.parameters = enter_path(match.kinds, match.parameters, principal) if match.parameters else ()
            asked = self._body(endpoint, request, body)
            if request.repeat_key and endpoint.repeats == "by key":
                request.context = request.context.repeating(
                    request.repeat_key, request.method.encode(), request.path.encode(), body
                )
            enter_body(asked, principal)
            if principal.queue_scope:
                await self._hide(match, request, asked)
            if self._rate_limits is not None:
                self._rate_limits.admit_items(request, endpoint.name, asked)
            if auditing is None or endpoint.name not in auditing.names:
                answer = await self._answer(endpoint, asked, request)
            else:
                around, auditing = auditing.around, None  # refusals from here on are recorded as outcomes
                answer = await around(endpoint, asked, request, self._answer)
            if answer.status == 204 and request.admission is not None and request.admission.is_over:
                raise refused()  # it was revoked while the request waited, and the wait ended for that
            if isinstance(answer.body, Streaming):
                await response.stream(answer.status, answer.body)
            else:
                await response.json(answer.status, answer.body, answer.headers)
        except Refusal as refusal:
            if auditing is not None:
                auditing.deny(request, refusal)
            await response.refusal(refusal)
        except Disconnected:
            response.status = 499
            if request.admission is not None and request.admission.is_over:
                await response.refusal(refused())  # the client is there, but its credential was revoked
        except asyncio.CancelledError:
            response.status = 499
            raise
        except Exception:  # the outermost frame: log it, answer 500, and go on with other requests
            log.exception("request failed", method=request.method, route=route, request_id=request.id.decode())
            if response.status == 0:
                await response.refusal(Refusal("INTERNAL_ERROR", "internal error; the gateway's log has the reason"))
        finally:
            metrics.in_flight -= 1
            method = request.method if request.method in METHODS else "other"  # clients must not be able to add labels
            metrics.observe(method, route, response.status, request.started)

    async def _enter(self, request: Request) -> Match:
        """The endpoint of a request whose principal may use it. Nothing of its body was read."""
        try:
            if self._routes.is_open(request.method, request.path):
                self._guard.pass_by(request)
            else:
                await self._guard.admit(request)
            match = self._routes.find(request.method, request.path)
            request.principal.require(match.endpoint.access)
            require_confined(request.principal, match.endpoint)
        except Refusal:
            request.leave_body()
            raise
        return match

    async def _enter_page(self, request: Request) -> None:
        access = PAGE_ACCESS.get(request.path)
        if access is not None:
            await self._guard.admit(request)
            request.principal.require(access)
            if request.path in METRICS_PATHS and not request.principal.is_cluster_wide:
                raise Refusal("FORBIDDEN", "this page is about all namespaces: it needs a key of the namespace default")
        request.scope[SEES_DETAILS] = access is not None or self._guard.sees_details(request)

    def _methods_of(self, path: str) -> list[str]:
        if not path.startswith(API) or path == METRICS_UNDER_API:
            return PAGE_METHODS
        methods = self._routes.methods_of(path)
        if not methods:
            raise unknown_path(path)
        return methods

    def _body(self, endpoint: Endpoint, request: Request, body: bytes) -> Any:
        if endpoint.body is None:
            return None if endpoint.query is None else parse_query(endpoint.query, request.query)
        if not body and endpoint.body_optional:
            return endpoint.body()
        require_json(request.content_type)
        return decode_body(self._routes.decoders[endpoint.name], body)

    async def _hide(self, match: Match, request: Request, asked: Any) -> None:
        """Make the ids in this request that are outside the scope unknown to it."""
        pairs = list(zip(match.kinds, request.parameters, strict=True))
        ids = {value for kind, value in pairs if kind is NameKind.ID} | ids_in(asked)
        schedules = [value for kind, value in pairs if kind is NameKind.SCHEDULE]
        if ids or schedules:
            request.context = request.context.hiding(await outside(self._shards, request.context, ids, schedules))

    async def _answer(self, endpoint: Endpoint, asked: Any, request: Request) -> Answer:
        if endpoint.name not in SHOWING:
            return await self._served(endpoint, asked, request)
        self._curtain.admit(endpoint, asked, request.principal)
        answer = await self._served(endpoint, asked, request)
        self._curtain.draw(answer.body, asked, request.principal)
        return answer

    async def _served(self, endpoint: Endpoint, asked: Any, request: Request) -> Answer:
        if endpoint.plan is None:
            return await self._handlers[endpoint.name](asked, request)
        context = request.context.acting_for(request.principal) if endpoint.needs_principal else request.context
        plan = endpoint.plan(context, asked, *request.parameters)
        answer = await carry_out(self._shards, plan, request.hung_up)
        if answer.version and self._registry is not None:
            await self._registry.reach(answer.version)
        return answer


async def refuse_stream(request: Request, scope: Scope, send: Send, refusal: Refusal) -> None:
    """Before the handshake, with an answer of HTTP where the server can send one. Otherwise it answers 403."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.code})
        return

    async def relay(message: MutableMapping[str, Any]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    request.must_close = True
    await Response(request, relay).refusal(refusal)


async def _lifespan(receive: Receive, send: Send) -> None:
    """`__main__` creates and closes the parts, not the server: only answer."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
