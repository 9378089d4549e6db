"""Writes records to the audit log of shard 0, and keeps those that could not be written, to try again.

What announces a change is written at once or not at all: the change waits for it. What reports its outcome is tried
once while the client waits. If that fails, it is kept and tried again in the background, for a while and up to a bound;
a record that is given up is named in the gateway's log. Every record has the id of its request, so one that was written
although the answer was lost is not written twice.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic

import msgspec
import structlog

from corvo.model.audit import AuditRecord, to_document
from corvo.model.errors import Refusal
from corvo.ops.audit.append_audit import AppendAudit
from gateway.access.registry import AskShard

ANNOUNCE_S = 5.0  # the client waits
REPORT_S = 2.0  # the client waits, and its change is done
RETRY_S, RETRY_S_MAX = 0.2, 5.0
KEPT_S = 600.0
KEPT_MAX = 1_000
STOP_S = 1.0  # for what is left when the gateway stops

log = structlog.get_logger()


class Unwritten(msgspec.Struct):
    """A record on its way. An outcome cannot be written before its intent has a number."""

    record: AuditRecord
    ask_id: int
    intent: AppendAudit | None = None  # whose number is not known yet
    kept_at: float = 0.0


class AuditWriter:
    def __init__(
        self, ask: AskShard, new_id: Callable[[], int], clock: Callable[[], float] = monotonic, pause_s: float = RETRY_S
    ) -> None:
        self._ask = ask
        self._new_id = new_id
        self._clock = clock
        self._pause_s = pause_s
        self._kept: deque[Unwritten] = deque()
        self._trying: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Records that wait to be tried again."""
        return len(self._kept)

    async def announce(self, record: AuditRecord, if_lost: AuditRecord | None = None) -> int:
        """Write it now; the number of the record. Refuses where that is not certain. It may be stored all the same, so
        `if_lost` then reports that nothing was done."""
        append = AppendAudit(self._new_id(), to_document(record))
        try:
            seq: int = await self._ask(append, ANNOUNCE_S)
        except Refusal as refusal:
            if if_lost is not None:
                self.keep(Unwritten(if_lost, self._new_id(), append))
            raise Refusal(
                "AUDIT_UNAVAILABLE",
                f"nothing was changed, because it cannot be recorded in the audit log: {refusal.message}",
                retry_after_ms=refusal.retry_after_ms or 1_000,
            ) from None
        return seq

    async def report(self, record: AuditRecord) -> None:
        """Write it now, or keep it."""
        unwritten = self.unwritten(record)
        is_written = False
        try:
            await self._write(unwritten, REPORT_S)
            is_written = True
        except Refusal as refusal:
            log.warning("the audit log cannot be written; trying again", intent=record.intent, reason=refusal.message)
        finally:  # also where this task is cancelled
            if not is_written:
                self.keep(unwritten)

    def unwritten(self, record: AuditRecord) -> Unwritten:
        return Unwritten(record, self._new_id())

    def keep(self, unwritten: Unwritten) -> None:
        """Write it in the background."""
        if len(self._kept) >= KEPT_MAX:
            self._give_up(unwritten, "too many records wait")
            return
        unwritten.kept_at = self._clock()
        self._kept.append(unwritten)
        if self._trying is None or self._trying.done():
            self._trying = asyncio.ensure_future(self._try_kept())

    async def stop(self) -> None:
        """One more moment for what is left."""
        if self._trying is not None:
            await asyncio.wait([self._trying], timeout=STOP_S)
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)
        while self._kept:
            self._give_up(self._kept.popleft(), "the gateway stops")

    async def _try_kept(self) -> None:
        pause_s = self._pause_s
        while self._kept:
            unwritten = self._kept[0]
            try:
                await self._write(unwritten, ANNOUNCE_S)
            except Refusal as refusal:
                if self._clock() - unwritten.kept_at < KEPT_S:
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, RETRY_S_MAX)
                    continue
                self._give_up(unwritten, refusal.message)
            self._kept.popleft()
            pause_s = self._pause_s

    async def _write(self, unwritten: Unwritten, timeout_s: float) -> None:
        if unwritten.intent is not None:
            seq: int = await self._ask(unwritten.intent, timeout_s)
            unwritten.record = msgspec.structs.replace(unwritten.record, intent=seq)
            unwritten.intent = None
        await self._ask(AppendAudit(unwritten.ask_id, to_document(unwritten.record)), timeout_s)

    def _give_up(self, unwritten: Unwritten, reason: str) -> None:
        record = unwritten.record
        log.error(
            "a record of the audit log is lost",
            kind=record.kind,
            intent=record.intent,
            principal=record.principal,
            status=record.status,
            reason=reason,
        )
