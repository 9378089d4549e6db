"""`GET /audit-logs/export`: the audit log as NDJSON, read from the state of shard 0 page by page.

The export ends with the record that was the newest when it began. The format is that of `corvo/model/audit_chain.py`.
An export that cannot go on stops without its last line, so that a reader knows that it was cut.
"""

import asyncio

import structlog

from corvo.endpoint import Answer
from corvo.model.audit import SHARD, decode_record
from corvo.model.audit_chain import Anchor, end_line, head_line, record_line
from corvo.model.errors import Refusal
from corvo.queries.audit_logs import EXPORT_BYTES, EXPORT_RECORDS, AuditExportQuery, AuditPage, ReadAudit
from gateway.http.messages import Disconnected, Request, Streaming, Write
from gateway.search.audit_logs import visible_namespace
from gateway.shards.client import Shards

WRITE_S = 30.0  # for one piece: a client that does not read must not hold it for ever
EXPORTS_MAX = 8  # at a time
CONTENT_TYPE = b"application/x-ndjson"

log = structlog.get_logger()


class AuditExport:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._open = 0

    async def begin(self, query: AuditExportQuery, request: Request) -> Answer:
        namespace = visible_namespace(request.principal, query.namespace)
        if self._open >= EXPORTS_MAX:
            raise Refusal("OVERLOADED", f"{EXPORTS_MAX} exports run already; try again", retry_after_ms=5_000)
        first = await self._page(query.after)  # an unreachable shard must give an error, not an empty export

        async def run(write: Write) -> None:
            self._open += 1
            try:
                await self._run(write, first, namespace)
            except Refusal as refusal:
                log.warning("an export of the audit log stopped", reason=refusal.message)
            finally:
                self._open -= 1

        return Answer(200, Streaming(CONTENT_TYPE, run))

    async def _page(self, after: int) -> AuditPage:
        page: AuditPage = await self._shards.ask(SHARD, ReadAudit(after, EXPORT_RECORDS, EXPORT_BYTES))
        return page

    async def _run(self, write: Write, page: AuditPage, namespace: str) -> None:
        reached = Anchor(page.start, page.start_hash)
        end = Anchor(page.last, page.last_hash)
        count = 0
        await _send(write, [head_line(reached, namespace)])
        while True:
            lines = []
            for entry in page.entries:
                if entry.seq > end.seq:
                    break
                if not namespace or decode_record(entry.document).namespace == namespace:
                    lines.append(record_line(entry.seq, reached.hash, entry.hash, entry.document))
                reached = Anchor(entry.seq, entry.hash)
            count += len(lines)
            await _send(write, lines)
            if reached.seq >= end.seq:
                break
            page = await self._page(reached.seq)
            if page.start != reached.seq:
                raise Refusal("OVERLOADED", f"records up to {page.start} were removed meanwhile")
        await _send(write, [end_line(reached, count)])


async def _send(write: Write, lines: list[bytes]) -> None:
    if not lines:
        return
    try:
        async with asyncio.timeout(WRITE_S):
            await write(b"\n".join(lines) + b"\n")
    except TimeoutError:
        raise Disconnected from None
