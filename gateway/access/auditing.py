"""Records who changes what: an intent before each change and an outcome after it, in the audit log of shard 0.

    request ─▶ settings before ─▶ intent stored ─▶ the change ─▶ settings after ─▶ outcome stored ─▶ answer
                                       │ cannot be: 503 AUDIT_UNAVAILABLE,             │ cannot be: kept, and tried
                                       ▼ and nothing is done                           ▼ again in the background

A crash between any two of these leaves an intent without an outcome, which lists show as `unknown`. A change without an
intent cannot be. What is recorded of a request is decided by tables (`audited.py`).

Where authentication is off, the principal is `anonymous` and the address tells who it was.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from corvo.endpoint import Answer, Endpoint
from corvo.model.access import Principal
from corvo.model.audit import AuditRecord, Details, bounded, long_text
from corvo.model.errors import Refusal
from corvo.model.namespaces import DEFAULT
from gateway.access import audited
from gateway.access.audit_writer import AuditWriter
from gateway.access.denials import DENIED, Denials
from gateway.http.messages import ENCODED_SLASH, Disconnected, Request

KEY_CHARS = 12  # of a key's hash: enough to tell keys apart
REQUEST_ID_CHARS = 128
LEFT = 499  # the client left, or the gateway stopped, before there was an outcome

Serve = Callable[[Endpoint, Any, Request], Awaitable[Answer]]


class LookAt(Protocol):
    """What an endpoint shows, by its name: the body of its answer."""

    def __call__(self, name: str, request: Request, parameters: tuple[str, ...]) -> Awaitable[Any]: ...


class Auditing:
    def __init__(
        self,
        endpoints: tuple[Endpoint, ...],
        writer: AuditWriter,
        look: LookAt,
        is_reading_audited: bool = False,
        known_key: Callable[[Request], str] = lambda request: "",
    ) -> None:
        """`known_key` gives the name of a key that was refused; empty: no key that is known."""
        changes = frozenset(endpoint.name for endpoint in endpoints if audited.is_change(endpoint))
        self._reads = audited.PAYLOAD_READS if is_reading_audited else frozenset[str]()
        self.names = changes | self._reads
        self._writer = writer
        self._look = look
        self._known_key = known_key
        self._denials = Denials()

    async def around(self, endpoint: Endpoint, asked: Any, request: Request, serve: Serve) -> Answer:
        """Serve the request of an endpoint in `names`, and record it."""
        if endpoint.name in self._reads:
            return await self._around_read(endpoint, asked, request, serve)
        view = audited.SETTINGS.get(endpoint.name)
        was, before = await self._settings(view, _name(view, asked, request, None), request)
        intent = _about(endpoint, asked, request, before)
        lost = _outcome(0, request, intent, 503, "AUDIT_UNAVAILABLE")
        seq = await self._writer.announce(intent, lost)
        outcome = _outcome(seq, request, intent, 500, "INTERNAL_ERROR")
        is_awaited = False  # by a client
        try:
            answer = await serve(endpoint, asked, request)
            outcome = _outcome(seq, request, intent, answer.status)
            outcome = await self._with_effects(outcome, answer, view, asked, request, was)
            is_awaited = True
            return answer
        except Refusal as refusal:
            outcome = _outcome(seq, request, intent, refusal.status, refusal.code)
            is_awaited = True
            raise
        except (Disconnected, asyncio.CancelledError):
            if outcome.code:  # there was no answer
                outcome = _outcome(seq, request, intent, LEFT)
            raise
        finally:
            if is_awaited:
                await self._writer.report(outcome)
            else:
                self._writer.keep(self._writer.unwritten(outcome))

    def deny(self, request: Request, refusal: Refusal) -> None:
        """A request that was refused before it was served. Recorded in the background, at a bounded rate."""
        if refusal.code not in DENIED:
            return
        principal: Principal | None = getattr(request, "principal", None)
        key = self._known_key(request) if principal is None else principal.key_hash[:KEY_CHARS]
        who = key if principal is None else principal.name
        if not who:
            return  # nobody that is known: anyone could fill the log
        address = _address(request)
        suppressed = self._denials.take(f"{address} {who}")
        if suppressed is None:
            return
        record = AuditRecord(
            kind="denied",
            namespace=DEFAULT if principal is None else principal.namespace,
            principal="" if principal is None else bounded(principal.name),
            principal_kind="key" if principal is None else principal.kind,
            role="" if principal is None else bounded(",".join(principal.roles)),
            key=key,
            address=address,
            request_id=_request_id(request),
            method=request.method,
            path=_path(request),
            status=refusal.status,
            code=refusal.code,
            suppressed=suppressed,
        )
        self._writer.keep(self._writer.unwritten(record))

    async def stop(self) -> None:
        await self._writer.stop()

    async def _around_read(self, endpoint: Endpoint, asked: Any, request: Request, serve: Serve) -> Answer:
        """One record, after the read and before its answer: nothing is shown that is not recorded."""
        answer = await serve(endpoint, asked, request)
        if audited.reads_payloads(request.principal):
            record = _about(endpoint, asked, request, UNSET)
            done = msgspec.structs.replace(record, kind="read", status=answer.status, duration_ms=_took_ms(request))
            await self._writer.announce(done)
        return answer

    async def _with_effects(
        self,
        outcome: AuditRecord,
        answer: Answer,
        view: audited.SettingsView | None,
        asked: Any,
        request: Request,
        was: Any,
    ) -> AuditRecord:
        """With the settings after the change, and the ids of what it made."""
        now, after = await self._settings(view, _name(view, asked, request, answer.body), request)
        if view is not None and isinstance(after, dict):
            after = audited.with_hidden_changes(after, (was, now), view.fields)
        return msgspec.structs.replace(outcome, made=audited.made_by(answer.body), after=after)

    async def _settings(
        self, view: audited.SettingsView | None, name: str | None, request: Request
    ) -> tuple[Any, Details | UnsetType | None]:
        """The view and what is recorded of it. Settings that do not exist are null; what cannot be read says why, and
        keeps nobody from the change."""
        if view is None:
            return None, UNSET
        if name is None:
            return None, None
        try:
            found = await self._look(view.endpoint, request, (name,) if name and not view.listed_by else ())
        except Refusal as refusal:
            return None, None if refusal.status == 404 else {"unreadable": refusal.code}
        if view.listed_by:
            found = next((one for one in found if getattr(one, view.listed_by) == name), None)
        if found is None:
            return None, None
        return found, audited.settings_of(found, view.fields, request.principal.namespace)


def _name(view: audited.SettingsView | None, asked: Any, request: Request, made: Any) -> str | None:
    """Of the settings that the request changes; None: it has none yet."""
    if view is None:
        return None
    if view.made_as and made is not None:
        name: str = getattr(made, view.made_as)
        return name
    return view.name(asked, request.parameters)


def _about(endpoint: Endpoint, asked: Any, request: Request, before: Details | UnsetType | None) -> AuditRecord:
    principal = request.principal
    namespace = principal.namespace
    return AuditRecord(
        kind="intent",
        namespace=namespace,
        principal=bounded(principal.name),
        principal_kind=principal.kind,
        role=bounded(",".join(principal.roles)),
        key=principal.key_hash[:KEY_CHARS],
        address=_address(request),
        request_id=_request_id(request),
        method=request.method,
        path=_path(request),
        route=endpoint.name,
        query=audited.query_of(endpoint, asked, namespace),
        target=audited.target_of(endpoint, request.parameters, namespace),
        change=audited.change_of(endpoint, asked, namespace),
        before=before,
    )


def _outcome(seq: int, request: Request, intent: AuditRecord, status: int, code: str = "") -> AuditRecord:
    return AuditRecord(
        kind="outcome",
        intent=seq,
        namespace=intent.namespace,
        query=intent.query,
        status=status,
        code=code,
        duration_ms=_took_ms(request),
    )


def _took_ms(request: Request) -> float:
    return round((perf_counter() - request.started) * 1000, 3)


def _address(request: Request) -> str:
    client = request.scope.get("client")
    return bounded(str(client[0])) if client else ""


def _request_id(request: Request) -> str:
    return bounded(request.id.decode(), REQUEST_ID_CHARS)


def _path(request: Request) -> str:
    return long_text(request.path.replace(ENCODED_SLASH, "%2F"))
