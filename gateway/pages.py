"""Pages beside the interface of jobs: health for machines, figures for Prometheus, documents for people."""

from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from corvo.model.errors import Refusal
from corvo.queries.cluster import ShardStatus
from corvo.queries.queues import QueueView
from gateway.access.late_sign_on import CALLBACK_PATH, LOGIN_PATH, LateSignOn
from gateway.console.assets import Console
from gateway.docs_page import SECURITY_POLICY, page
from gateway.health import Health, NodeState, ShardHealth
from gateway.http.messages import ErrorBody, to_json
from gateway.metrics import Metrics
from gateway.openapi import describe
from gateway.search import queues
from gateway.search.database import ReadDb

if TYPE_CHECKING:
    from corvo.endpoint import Endpoint


METRICS_UNDER_API = "/api/v1/metrics"  # where the original served them: dashboards know it
METRICS_PATHS = ("/metrics", METRICS_UNDER_API)
# The permission that a page needs. The others are open: health, for machines that have no key.
PAGE_ACCESS = {
    **dict.fromkeys(METRICS_PATHS, "metrics:read"),
    "/docs": "docs:read",
    "/openapi.json": "docs:read",
    "/llms.txt": "docs:read",
}
LLMS = Path(__file__).with_name("llms.txt")  # written by docs/llms.py
SEES_DETAILS = "corvo.sees_details"  # in a scope: whether health may be told in full
HIDDEN = "not well; a credential with the permission cluster:read shows why"


class LiveView(msgspec.Struct):
    status: str
    node_id: str | UnsetType = UNSET


class BriefView(msgspec.Struct):
    """For those who may not see more."""

    status: str


class HealthView(msgspec.Struct, omit_defaults=True, kw_only=True):
    """`raft_state` and `leader` are what all shards of the node have in common, else `mixed` and empty."""

    status: str = ""
    raft_state: str
    leader: str
    health: str = ""  # a word of the scale and its reasons: gateway/shards/health_scale.py
    error: str = ""
    code: str = ""
    read_db_lag_ms: float | None = None
    shards: list[ShardHealth]


class Pages:
    def __init__(
        self,
        health: Health,
        metrics: Metrics,
        read_db: ReadDb,
        endpoints: "tuple[Endpoint, ...]",
        node_id: str,
        console: Console,
        sign_on: LateSignOn | None = None,
    ) -> None:
        self._sign_on = sign_on
        self._health = health
        self._metrics = metrics
        self._read_db = read_db
        self._node_id = node_id
        self._openapi = to_json(describe(endpoints))
        self._endpoints = endpoints
        self._console = console

    def app(self) -> Starlette:
        app = Starlette(
            routes=[
                Route("/", self._root),
                Route("/healthz", self._healthz),
                Route("/livez", self._livez),
                Route("/readyz", self._readyz),
                *(Route(path, self.metrics) for path in METRICS_PATHS),
                Route("/openapi.json", self._describe),
                Route("/docs", self._show),
                Route("/llms.txt", self._index),
                *_sign_on_routes(self._sign_on),
                *self._console.routes(),
            ],
            exception_handlers={404: _unknown, 405: _wrong_method},
        )
        app.router.redirect_slashes = False  # it would redirect to whatever host the client named
        return app

    async def _root(self, request: Request) -> Response:
        return RedirectResponse("ui/" if self._console.is_built else "docs")  # relative: also behind a prefix

    @cached_property
    def _llms(self) -> bytes:
        return LLMS.read_bytes()

    async def _index(self, request: Request) -> Response:
        return Response(self._llms, media_type="text/plain; charset=utf-8")

    async def _livez(self, request: Request) -> Response:
        """No process of the node hangs. Reads heartbeats and asks no shard: one without a leader needs no restart."""
        sees_details = request.scope[SEES_DETAILS]
        if hung := self._health.hung():
            return _json(503, ErrorBody("; ".join(hung) if sees_details else HIDDEN, "UNHEALTHY"))
        return _json(200, LiveView("ok", self._node_id if sees_details else UNSET))

    async def _healthz(self, request: Request) -> Response:
        state = await self._health.look()
        is_unavailable = state.report.level == "unavailable"
        return _health(request, state, "ok", [state.report.sentence] if is_unavailable else [])

    async def _readyz(self, request: Request) -> Response:
        state = await self._health.look()
        return _health(request, state, "ready", self._health.unready(state))

    async def metrics(self, request: Request) -> Response:
        state = await self._health.look()
        statuses = [status for status in state.owns if isinstance(status, ShardStatus)]
        known: list[QueueView] = []
        try:
            known = await queues.of_all_namespaces(self._read_db)
        except Refusal:
            pass  # the lag is missing from the page too: that is the alarm
        content = self._metrics.render(statuses, known, state.lag, state.report, self._health.record().restarts)
        return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _describe(self, request: Request) -> Response:
        return Response(self._openapi, media_type="application/json")

    @cached_property
    def _docs(self) -> str:
        """Made when somebody looks: a gateway should start fast."""
        return page(self._endpoints)

    async def _show(self, request: Request) -> Response:
        return HTMLResponse(self._docs, headers={"content-security-policy": SECURITY_POLICY})


def _sign_on_routes(sign_on: LateSignOn | None) -> list[Route]:
    """Open to everybody: they are the way in."""
    if sign_on is None:
        return []
    return [
        Route(LOGIN_PATH, _refusing(sign_on.login), methods=["GET"]),
        Route(CALLBACK_PATH, _refusing(sign_on.callback), methods=["GET"]),
    ]


def _refusing(serve: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def served(request: Request) -> Response:
        try:
            return await serve(request)
        except Refusal as refusal:
            body = ErrorBody(refusal.message, refusal.code, refusal.field, refusal.retry_after_ms)
            return _json(refusal.status, body)

    return served


def _health(request: Request, state: NodeState, word: str, faults: list[str]) -> Response:
    """`?verbose` tells more, also where the answer is no: what each shard waits for, and the age of the lists. Without
    the permission `cluster:read` there are no details."""
    if not request.scope[SEES_DETAILS]:
        return _json(503, ErrorBody(HIDDEN, "UNHEALTHY")) if faults else _json(200, BriefView(word))
    is_verbose = "verbose" in request.query_params
    if faults and not is_verbose:
        return _json(503, ErrorBody("; ".join(faults), "UNHEALTHY"))
    shards = state.shards()
    view = HealthView(
        raft_state=_common([shard.raft_state for shard in shards], "mixed"),
        leader=_common([shard.leader for shard in shards], ""),
        health=state.report.sentence,
        shards=shards,
    )
    if is_verbose and state.lag is not None:
        view.read_db_lag_ms = round(state.lag.lag_ms, 3)
    if faults:
        view.error, view.code = "; ".join(faults), "UNHEALTHY"
    else:
        view.status = word
    return _json(503 if faults else 200, view)


def _common(values: list[str], otherwise: str) -> str:
    return values[0] if len(set(values)) == 1 else otherwise


def _json(status: int, body: msgspec.Struct) -> Response:
    return Response(to_json(body), status, media_type="application/json")


async def _unknown(request: Request, error: Exception) -> Response:
    return _json(404, ErrorBody(f"there is no route {request.url.path[:200]}; /docs lists the routes", "NOT_FOUND"))


async def _wrong_method(request: Request, error: Exception) -> Response:
    return _json(405, ErrorBody(f"{request.url.path[:200]} does not support {request.method}", "METHOD_NOT_ALLOWED"))
