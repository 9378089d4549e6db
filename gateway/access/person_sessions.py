"""Sessions of people who signed on: opened and closed in the replicated state, and recorded in the audit log.

A session is an API key that ends after some hours. Its text is made here and leaves in a cookie; the state has its
hash.
"""

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any

import msgspec

from corvo.model.access import Principal
from corvo.model.access_records import ApiKey
from corvo.model.api_key_text import KEY_BYTES, hash_of, key_text, shown_part
from corvo.model.audit import AuditRecord, bounded
from corvo.model.errors import Refusal
from corvo.ops.access.close_session import CloseSession
from corvo.ops.access.open_session import OpenSession
from gateway.access.audit_writer import AuditWriter
from gateway.access.registry import AskShard, Registry

CHANGE_S = 10.0
KEY_CHARS = 12  # of a key's hash, in the audit log


class PersonSessions:
    def __init__(self, ask: AskShard, registry: Registry, audit: AuditWriter) -> None:
        self._ask = ask
        self._registry = registry
        self._audit = audit

    async def open(
        self, principal: Principal, issuer: str, subject: str, ends_at: int, scope: MutableMapping[str, Any]
    ) -> str:
        """What the person's cookie holds."""
        text = key_text(secrets.token_bytes(KEY_BYTES))
        session = ApiKey(
            hash_of(text),
            principal.name,
            shown_part(text),
            principal.namespace,
            principal.roles[0],
            principal.roles[1:],
            created_by="sign-on",
            expires_at=ends_at,
            issuer=issuer,
            subject=subject,
        )
        record = _record(principal, "sign_on", scope, {"key_hash": session.key_hash})
        await self._recorded(record, lambda: self._ask(OpenSession(session), CHANGE_S))
        return text

    async def close(self, key_hash: str, scope: MutableMapping[str, Any]) -> None:
        """Log a person out. Of a key that is no session nothing is changed: programs may use it."""
        key = self._registry.key(key_hash)
        if key is None or not key.is_session:
            return
        record = _record(self._registry.principal_of(key), "sign_off", scope, {})
        await self._recorded(record, lambda: self._ask(CloseSession(key_hash), CHANGE_S))

    async def _recorded(self, intent: AuditRecord, change: Callable[[], Awaitable[int]]) -> None:
        """The change, between its two records; then wait until this gateway knows it."""
        started = perf_counter()
        seq = await self._audit.announce(intent)
        status, code = 500, "INTERNAL_ERROR"
        try:
            version = await change()
            status, code = 200, ""
        except Refusal as refusal:
            status, code = refusal.status, refusal.code
            raise
        finally:
            took_ms = round((perf_counter() - started) * 1000, 3)
            outcome = AuditRecord(
                kind="outcome", intent=seq, namespace=intent.namespace, status=status, code=code, duration_ms=took_ms
            )
            made = intent.target if status == 200 else {}
            self._audit.keep(self._audit.unwritten(msgspec.structs.replace(outcome, made=made)))
        await self._registry.reach(version)


def _record(principal: Principal, route: str, scope: MutableMapping[str, Any], target: dict[str, str]) -> AuditRecord:
    client = scope.get("client")
    return AuditRecord(
        kind="intent",
        namespace=principal.namespace,
        principal=bounded(principal.name),
        principal_kind=principal.kind,
        role=bounded(",".join(principal.roles)),
        key=principal.key_hash[:KEY_CHARS],
        address=bounded(str(client[0])) if client else "",
        method=scope["method"],
        path=scope["path"],
        route=route,
        target=target,
    )
