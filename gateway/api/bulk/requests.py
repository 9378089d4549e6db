"""`POST /jobs/bulk`: counts the jobs; few are changed within the request, many become an operation.

An action within a request stores no record. If the client disconnects or the gateway dies, the client repeats the
request; jobs already changed stay changed. An operation continues on its own (`gateway/api/bulk/running.py`).
"""

import asyncio
from time import perf_counter
from typing import NamedTuple

import msgspec

from corvo.endpoint import Answer, PlanContext
from corvo.model.errors import Refusal
from corvo.model.limits import BULK_AT_ONCE_MAX, BULK_MEMO_AT_ONCE_MS, JOBS_PER_REQUEST_MAX
from corvo.ops.bulk.begin_bulk import (
    ACCESS,
    BeginBulk,
    BulkBody,
    BulkDone,
    BulkStarted,
    SampleJob,
    check_matching,
    done_view,
    order_of,
)
from corvo.queries.job import JobView
from corvo.queries.jobs import BulkGetBody, plan_jobs
from corvo.queries.search import JobSummary, SearchBody
from corvo.rules.bulk import BULK_SHARD, BulkCounts, Order
from gateway.api.bulk.acting import Acting
from gateway.api.bulk.matching import Jobs, Matching, Named, pinned, stored
from gateway.api.bulk.running import Running
from gateway.http.messages import Disconnected, Request
from gateway.routes import API
from gateway.search import search
from gateway.search.database import ReadDb
from gateway.search.lag import catch_up
from gateway.shards.client import Shards
from gateway.shards.plan_executor import carry_out

AT_ONCE_S = 60.0  # for all slices of one request
REQUESTS_MAX = 16  # concurrent requests; they take turns
SAMPLE = 10
ACCEPTED = "processing"  # queued or running; `GET /bulk/{id}` tells which


class MatchedJobs(NamedTuple):
    total: int
    is_exact: bool
    wanted: SearchBody | None  # None: the jobs were named
    job_ids: list[str]


class Requests:
    def __init__(self, shards: Shards, read_db: ReadDb, acting: Acting, running: Running) -> None:
        self._shards = shards
        self._read_db = read_db
        self._acting = acting
        self._running = running
        self._under_way = 0

    async def bulk(self, body: BulkBody, request: Request) -> Answer:
        started = perf_counter()
        context = request.context
        order = order_of(body, context.scope)
        request.principal.require(ACCESS[order.action])
        check_matching(context, body)
        found = await self._find(context, body)
        if body.dry_run:
            return Answer(200, await self._preview(context, found, started))
        if body.is_async or found.total > BULK_AT_ONCE_MAX or not found.is_exact:
            return await self._begin(context, order, found)
        return await self._at_once(order, found, request, started)

    async def _find(self, context: PlanContext, body: BulkBody) -> MatchedJobs:
        if body.filter is None:
            job_ids = list(dict.fromkeys(body.job_ids or ()))
            return MatchedJobs(len(job_ids), True, None, job_ids)
        wanted = pinned(body.filter, context.clock_ns())
        await catch_up(self._shards, self._read_db)
        try:
            total, is_exact = await search.count(self._read_db.within(context.reach), wanted)
        except Refusal as refusal:
            if refusal.field is None:
                raise
            raise Refusal(refusal.code, f"filter.{refusal.message}", f"filter.{refusal.field}") from None
        return MatchedJobs(total, is_exact, wanted, [])

    async def _preview(self, context: PlanContext, found: MatchedJobs, started: float) -> BulkDone:
        sample: list[SampleJob] = []
        total = found.total
        if found.wanted is not None:
            page = await search.answer(
                self._read_db.within(context.reach), msgspec.structs.replace(found.wanted, order="asc", limit=SAMPLE)
            )
            sample = [_sample(job) for job in page.jobs]
        else:
            total = 0
            for first in range(0, len(found.job_ids), JOBS_PER_REQUEST_MAX):
                some = BulkGetBody(found.job_ids[first : first + JOBS_PER_REQUEST_MAX])
                known = (await carry_out(self._shards, plan_jobs(context, some))).body.jobs
                total += len(known)
                sample += [_sample(job) for job in known[: SAMPLE - len(sample)]]
        return BulkDone(
            affected=0,
            errors=0,
            duration_ms=_since(started),
            matched=total,
            matched_is_exact=found.is_exact,
            dry_run=True,
            sample=sample,
        )

    async def _begin(self, context: PlanContext, order: Order, found: MatchedJobs) -> Answer:
        bulk_id = context.mint.bulk_id()
        wanted = b"" if found.wanted is None else stored(found.wanted)
        await self._shards.ask(
            BULK_SHARD, BeginBulk(bulk_id, order, wanted, found.job_ids, found.total, found.is_exact)
        )
        self._running.look()
        url = f"{API}/bulk/{bulk_id}/progress"
        return Answer(202, BulkStarted(bulk_id, ACCEPTED, found.total, url, found.is_exact))

    async def _at_once(self, order: Order, found: MatchedJobs, request: Request, started: float) -> Answer:
        if self._under_way >= REQUESTS_MAX:
            raise Refusal("OVERLOADED", f"{REQUESTS_MAX} bulk actions are running already", retry_after_ms=1_000)
        jobs: Jobs = (
            Named(found.job_ids)
            if found.wanted is None
            else Matching(self._shards, self._read_db.within(request.context.reach), found.wanted)
        )
        tally = BulkCounts()
        self._under_way += 1
        gone = asyncio.ensure_future(request.hung_up())
        try:
            async with asyncio.timeout(AT_ONCE_S):
                await self._slices(request.context, order, jobs, tally, gone)
        except TimeoutError:
            raise Refusal(
                "DEADLINE_EXCEEDED",
                f"not finished within {AT_ONCE_S:g} s: {tally.affected} jobs were changed, {sum(tally.errors.values())}"
                " refused; repeat the request to continue with the rest",
            ) from None
        finally:
            self._under_way -= 1
            gone.cancel()
        return Answer(200, done_view(tally, found.total, _since(started)))

    async def _slices(
        self, context: PlanContext, order: Order, jobs: Jobs, tally: BulkCounts, gone: "asyncio.Future[None]"
    ) -> None:
        bulk_id = context.mint.bulk_id()
        cursor, is_last, step = "", False, 0

        async def goes_on() -> bool:
            return not gone.done()

        while not is_last:
            if gone.done():
                raise Disconnected
            page = await jobs.page(cursor)
            cursor, is_last = page.cursor, page.is_last
            step += 1
            tally.add(await self._acting.act(bulk_id, step, order, page.job_ids, BULK_MEMO_AT_ONCE_MS, goes_on))


def _sample(job: JobSummary | JobView) -> SampleJob:
    return SampleJob(job.id, job.queue, job.state, job.priority, job.attempt, job.created_at)


def _since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)
