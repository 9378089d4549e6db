"""Runs bulk operations: the gateway claims one that no other gateway has claimed, and runs it slice by slice.

The state of an operation is its record on shard 0, so a crash here loses nothing. A slice is recorded before it runs,
so the gateway that takes over starts with exactly that slice. A few operations run at a time and take turns
(`gateway/api/bulk/acting.py`).
"""

import asyncio

import structlog

from corvo.endpoint import PlanContext
from corvo.model.errors import Refusal
from corvo.model.limits import BULK_LEASE_MS, BULK_MEMO_MS, TEXT_CHARS_MAX
from corvo.ops.bulk.advance_bulk import AdvanceBulk
from corvo.ops.bulk.claim_bulk import ClaimBulk, is_free
from corvo.queries.bulk import GetBulk, ListBulks
from corvo.rules.bulk import BULK_SHARD, STATUS_NAMES, Bulk, BulkCounts, Status
from gateway.api.bulk.acting import UNDECIDED, Acting
from gateway.api.bulk.matching import Jobs, MatchPage, jobs_of
from gateway.search.database import ReadDb
from gateway.shards.client import Shards

LOOK_EVERY_S = 2.0  # for operations of dead gateways; its own start at once
AT_A_TIME = 4
PAUSE_S = 1.0  # before a retry
SLOW_SEARCHES_MAX = 5  # in a row; the filter will not get faster

log = structlog.get_logger()


class Running:
    def __init__(self, shards: Shards, read_db: ReadDb, context: PlanContext, acting: Acting, seat: str) -> None:
        self._shards = shards
        self._read_db = read_db
        self._context = context
        self._acting = acting
        self._seat = seat
        self._gateway = context.mint.claim_id()
        self._wake = asyncio.Event()
        self._works: set[asyncio.Task[None]] = set()

    def look(self) -> None:
        """Looks for an operation now: there may be a new one."""
        self._wake.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            while True:
                self._wake.clear()
                await self._take_up()
                try:
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            for work in self._works:
                work.cancel()
            await asyncio.gather(*self._works, return_exceptions=True)

    async def _take_up(self) -> None:
        while len(self._works) < AT_A_TIME:
            try:
                bulk = await self.claim()
            except Refusal as refusal:
                log.debug("cannot look for bulk operations", reason=refusal.message)
                return
            if bulk is None:
                return
            work = asyncio.ensure_future(self.work(bulk))
            self._works.add(work)
            work.add_done_callback(self._done)

    def _done(self, work: "asyncio.Task[None]") -> None:
        self._works.discard(work)
        self._wake.set()
        if not work.cancelled() and (error := work.exception()) is not None:
            log.error("a bulk operation was dropped; a gateway resumes it when its lease expires", exc_info=error)

    async def claim(self) -> Bulk | None:
        """Queries first, which writes no log entry: nearly always there is nothing to claim."""
        waiting: list[Bulk] = await self._shards.ask(BULK_SHARD, ListBulks())
        now = self._context.clock_ns()
        if not any(is_free(bulk, self._seat, self._gateway, now) for bulk in waiting):
            return None
        claim = ClaimBulk(self._seat, self._gateway, self._context.mint.claim_id(), BULK_LEASE_MS)
        bulk: Bulk | None = await self._shards.ask(BULK_SHARD, claim)
        return bulk

    async def work(self, bulk: Bulk) -> None:
        """Works until the operation has ended or another gateway has claimed it."""
        log.info("bulk operation started", id=bulk.id, slice=bulk.step, processed=bulk.tally.processed)
        try:
            status = await self._slices(bulk)
        except Refusal as refusal:
            log.info("bulk operation released", id=bulk.id, code=refusal.code, reason=refusal.message)
        else:
            log.info("bulk operation ended", id=bulk.id, status=STATUS_NAMES[status])

    async def _slices(self, bulk: Bulk) -> Status:
        reading = JobReader(self._shards, self._read_db, bulk)
        page = MatchPage(bulk.slice, bulk.cursor, bulk.is_last)
        step = bulk.step

        async def goes_on() -> bool:
            return await self._is_wanted(bulk)

        while True:
            tally = await self._acting.act(bulk.id, step, bulk.order, page.job_ids, BULK_MEMO_MS, goes_on)
            page = MatchPage([], page.cursor, True) if page.is_last else await reading.next(page.cursor)
            step += 1
            status = await self._report(bulk, step, tally, page, reading.failure)
            if status is not Status.RUNNING:
                return status

    async def _is_wanted(self, bulk: Bulk) -> bool:
        try:
            known: Bulk = await self._shards.ask(BULK_SHARD, GetBulk(bulk.id))
        except Refusal as refusal:
            if refusal.code in UNDECIDED:
                return True
            raise
        if known.claim != bulk.claim:
            raise Refusal("LEASE_LOST", f"another gateway works on {bulk.id}")
        return not known.is_cancelling

    async def _report(self, bulk: Bulk, step: int, tally: BulkCounts, page: MatchPage, failure: str) -> Status:
        """Retries until it arrives: a repeated report changes nothing."""
        report = AdvanceBulk(bulk.id, bulk.claim, step, tally, *page, BULK_LEASE_MS, failure)
        while True:
            try:
                status: Status = await self._shards.ask(BULK_SHARD, report)
                return status
            except Refusal as refusal:
                if refusal.code not in UNDECIDED:
                    raise
                log.info("a bulk operation waits to report", id=bulk.id, reason=refusal.message)
            await asyncio.sleep(PAUSE_S)


class JobReader:
    """Reads the pages of one operation. If a page cannot be read, returns an empty page after a pause, so that the
    operation keeps its claim and can be cancelled."""

    def __init__(self, shards: Shards, read_db: ReadDb, bulk: Bulk, pause_s: float = PAUSE_S) -> None:
        self._shards = shards
        self._read_db = read_db
        self._bulk = bulk
        self._pause_s = pause_s
        self._jobs: Jobs | None = None  # once prepared
        self._slow = 0
        self.failure = ""

    async def next(self, cursor: str) -> MatchPage:
        try:
            page = await (await self._prepared()).page(cursor)
        except Refusal as refusal:
            self._slow += refusal.code == "DEADLINE_EXCEEDED"
            if refusal.code not in UNDECIDED or self._slow >= SLOW_SEARCHES_MAX:
                self.failure = f"{refusal.message} ({refusal.code})"[:TEXT_CHARS_MAX]
            else:
                log.info("a bulk operation waits for its jobs", id=self._bulk.id, reason=refusal.message)
                await asyncio.sleep(self._pause_s)
            return MatchPage([], cursor, False)
        self._slow = 0
        return page

    async def _prepared(self) -> Jobs:
        if self._jobs is None:
            jobs = jobs_of(self._shards, self._read_db, self._bulk)
            await jobs.prepare()
            self._jobs = jobs
        return self._jobs
