"""The application over fake shards with its audit log, and a guard that lets everyone in as whoever the test says."""

import os
from typing import Any

import msgspec

from corvo.endpoint import PlanContext
from corvo.model import audit
from corvo.model.access import ANONYMOUS, Principal, built_in
from corvo.model.audit import AuditRecord, decode_record
from corvo.model.audit_chain import ChainCheck, end_line, head_line, record_line
from corvo.model.errors import Refusal
from corvo.model.ids import Minter
from gateway.access.audit_writer import AuditWriter
from gateway.access.auditing import Auditing
from gateway.access.guard import Guard
from gateway.app import ENDPOINTS
from gateway.http.messages import Request
from gateway.shards.plan_executor import Looking
from tests.gateway.asgi import OFF, House, Reply, a_scope
from tests.support.builders import NOW, Clock

ADA = msgspec.structs.replace(built_in("ada@example.org", "person", "admin"), known={})
WORKER = msgspec.structs.replace(built_in("worker", "key", "worker"), key_hash="ab" * 32, known={})


class PlayedGuard(Guard):
    """Every request is the principal's, or refused."""

    def __init__(self, context: PlanContext) -> None:
        super().__init__(context, None, OFF)
        self.principal = ANONYMOUS
        self.refusal: Refusal | None = None

    async def admit(self, request: Request) -> None:
        if self.refusal is not None:
            raise self.refusal
        request.principal = self.principal
        request.context = self.context_of(self.principal)


class AuditedHouse(House):
    def __init__(self, shard_count: int = 4, reads: bool = False, known_key: str = "") -> None:
        super().__init__(shard_count)
        mint = Minter(Clock([NOW]), 0xABCDE)
        self.guard = PlayedGuard(PlanContext(shard_count, 1_000, mint, Clock([NOW]), dice=os.urandom))
        shards: Any = self.shards
        self.writer = AuditWriter(
            lambda ask, timeout_s: shards.ask(audit.SHARD, ask, timeout_s=timeout_s), mint.claim_id, pause_s=0.001
        )
        self.auditing = Auditing(ENDPOINTS, self.writer, Looking(shards, ENDPOINTS), reads, lambda request: known_key)
        self.app._guard = self.guard
        self.app._auditing = self.auditing

    def be(self, principal: Principal) -> None:
        self.guard.principal = principal

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        path, _, query = path.partition("?")
        lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        content = b"" if body is None else msgspec.json.encode(body)
        lines += [(b"content-type", b"application/json")] if body is not None else []
        scope = a_scope(method, "/api/v1" + path, lines, query_string=query.encode(), client=("192.0.2.7", 5))
        return self.runner.run(_call(self, scope, content))

    def records(self) -> list[AuditRecord]:
        """All of them; the chain is right."""
        log = self.shards.machines[audit.SHARD].tables.audit_log
        check, previous, found = ChainCheck(), log.first.hash, []
        check.take(head_line(log.first))
        for entry in log.after(0, 10**6, 10**9)[1]:
            check.take(record_line(entry.seq, previous, entry.hash, entry.document))
            previous = entry.hash
            found.append(decode_record(entry.document))
        check.take(end_line(log.last, len(found)))
        check.finish()
        return found

    def pair(self) -> tuple[AuditRecord, AuditRecord]:
        """The intent and the outcome of the only change."""
        intent, outcome = self.records()
        assert (intent.kind, outcome.kind, outcome.intent) == ("intent", "outcome", intent.seq)
        return intent, outcome


async def _call(house: AuditedHouse, scope: Any, content: bytes) -> Reply:
    from tests.gateway.asgi import call, parts

    return await call(house.app, scope, parts(content))
