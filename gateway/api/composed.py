"""Handlers of endpoints that have no plan: waiting fetches, reads of the read database, events."""

from corvo.endpoint import Answer
from corvo.ops.jobs.fetch import (
    Claimed,
    FetchBatchBody,
    FetchBody,
    FetchedBatch,
    fetched_job,
    new_fetch,
)
from corvo.queries.audit_logs import AuditLogsQuery
from corvo.queries.batches_list import BatchesQuery
from corvo.queries.error_groups import ErrorGroupsQuery
from corvo.queries.events import EventsPageQuery, EventsQuery
from corvo.queries.queue_names import checked_name
from corvo.queries.queues import QueuesQuery
from corvo.queries.search import FulltextQuery, SearchBody
from corvo.queries.state_lists import StateListQuery, search_body
from corvo.queries.throughput import ThroughputPoint, ThroughputQuery
from gateway.api.audit_export import AuditExport
from gateway.api.events import EventListener
from gateway.api.fetch import Fetcher
from gateway.api.rebuild import Rebuilding
from gateway.health import Health
from gateway.http.messages import Request
from gateway.routes import Handler
from gateway.search import (
    audit_logs,
    batches_list,
    error_groups,
    fulltext,
    queues,
    search,
    throughput,
    worker,
    workers,
)
from gateway.search.database import ReadDb
from gateway.search.lag import catch_up
from gateway.shards.client import Shards

ATTEMPT_HEADER = b"x-corvo-attempt"


class ComposedEndpoints:
    def __init__(
        self,
        shards: Shards,
        fetching: Fetcher,
        read_db: ReadDb,
        health: Health,
        listening: EventListener,
        rebuilding: Rebuilding,
    ) -> None:
        self._shards = shards
        self._fetching = fetching
        self._read_db = read_db
        self._health = health
        self._listening = listening
        self._rebuilding = rebuilding
        self._audit_export = AuditExport(shards)

    def by_name(self) -> dict[str, Handler]:
        return {
            "fetch": self._fetch,
            "fetch_batch": self._fetch_batch,
            "search": self._search,
            "fulltext": self._fulltext,
            "queues": self._queues,
            "workers": self._workers,
            "get_worker": self._worker,
            "dead": self._dead,
            "held": self._held,
            "throughput": self._throughput,
            "queue_throughput": self._queue_throughput,
            "error_groups": self._error_groups,
            "batches": self._batches,
            "audit_logs": self._audit_logs,
            "export_audit_logs": self._audit_export.begin,
            "cluster_status": self._health.cluster_status,
            "info": self._health.info,
            "events": self._events,
            "cluster_events": self._cluster_events,
            "rebuild_read_db": self._rebuilding.ask,
            "rebuild_sqlite": self._rebuilding.ask_and_wait,
        }

    async def _fetch(self, body: FetchBody, request: Request) -> Answer:
        claimed = await self._claim(body, 1, request)
        return Answer(200, fetched_job(claimed[0])) if claimed else Answer(204, None)

    async def _fetch_batch(self, body: FetchBatchBody, request: Request) -> Answer:
        claimed = await self._claim(body, body.count, request)
        return Answer(200, FetchedBatch([fetched_job(job) for job in claimed]))

    async def _claim(self, body: FetchBody, count: int, request: Request) -> list[Claimed]:
        fetch = new_fetch(body, request.context.mint.claim_id(), count)
        if request.repeat_key and request.header(ATTEMPT_HEADER) != "1":  # it may have been sent before
            held = await self._fetching.held_by(fetch)
            if held:
                return held
        return await self._fetching.fetch(fetch, request.hung_up)

    async def _search(self, body: SearchBody, request: Request) -> Answer:
        if body.consistent:
            await self._catch_up()
        return Answer(200, await search.answer(self._read_db.within(request.context.reach), body))

    async def _fulltext(self, query: FulltextQuery, request: Request) -> Answer:
        if query.consistent:
            await self._catch_up()
        return Answer(200, await fulltext.answer(self._read_db.within(request.context.reach), query))

    async def _queues(self, query: QueuesQuery, request: Request) -> Answer:
        if query.consistent:
            await self._catch_up()
        return Answer(200, await queues.answer(self._read_db.within(request.context.reach)))

    async def _workers(self, body: None, request: Request) -> Answer:
        return Answer(200, await workers.answer(self._read_db.within(request.context.reach)))

    async def _worker(self, body: None, request: Request) -> Answer:
        return Answer(200, await worker.answer(self._read_db.within(request.context.reach), *request.parameters))

    async def _dead(self, query: StateListQuery, request: Request) -> Answer:
        return await self._search(search_body("dead", query), request)

    async def _held(self, query: StateListQuery, request: Request) -> Answer:
        return await self._search(search_body("held", query), request)

    async def _throughput(self, query: ThroughputQuery, request: Request) -> Answer:
        return Answer(200, await self._series(query, request))

    async def _queue_throughput(self, query: ThroughputQuery, request: Request) -> Answer:
        return Answer(200, await self._series(query, request, *map(checked_name, request.parameters)))

    async def _series(
        self, query: ThroughputQuery, request: Request, queue: str | None = None
    ) -> list[ThroughputPoint]:
        if query.consistent:
            await self._catch_up()
        return await throughput.answer(self._read_db.within(request.context.reach), query, queue)

    async def _error_groups(self, query: ErrorGroupsQuery, request: Request) -> Answer:
        if query.consistent:
            await self._catch_up()
        return Answer(200, await error_groups.answer(self._read_db.within(request.context.reach), query))

    async def _batches(self, query: BatchesQuery, request: Request) -> Answer:
        if query.consistent:
            await self._catch_up()
        return Answer(200, await batches_list.answer(self._read_db.within(request.context.reach), query))

    async def _audit_logs(self, query: AuditLogsQuery, request: Request) -> Answer:
        namespace = audit_logs.visible_namespace(request.principal, query.namespace)
        if query.consistent:
            await self._catch_up()
        return Answer(200, await audit_logs.answer(self._read_db, query, namespace))

    async def _events(self, query: EventsQuery, request: Request) -> Answer:
        return await self._listening.stream(query, request)

    async def _cluster_events(self, query: EventsPageQuery, request: Request) -> Answer:
        return await self._listening.page(query, request.context.reach)

    async def _catch_up(self) -> None:
        """Waits until the read database holds every write that any node acknowledged before this request."""
        await catch_up(self._shards, self._read_db)
