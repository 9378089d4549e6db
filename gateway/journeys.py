"""What serves the endpoints that are more than one plan: fetches that wait, reads of read.db, events."""

from corvo.ids import Minter
from corvo.ops.jobs.fetch import (
    FetchBatchBody,
    FetchBody,
    FetchedBatch,
    fetched_job,
    new_fetch,
)
from corvo.ops.operation import Answer
from corvo.queries.batches_list import BatchesQuery
from corvo.queries.queues import QueuesQuery
from corvo.queries.search import SearchBody
from gateway.answers import batches_list, queues, search, workers
from gateway.answers.database import ReadDb
from gateway.answers.lag import catch_up
from gateway.app import Journey
from gateway.events import Listening
from gateway.fetching import Fetching
from gateway.health import Health
from gateway.http import Request, parse_query
from gateway.links import Shards


class Journeys:
    def __init__(
        self,
        shards: Shards,
        fetching: Fetching,
        read_db: ReadDb,
        mint: Minter,
        health: Health,
        listening: Listening,
    ) -> None:
        self._shards = shards
        self._fetching = fetching
        self._read_db = read_db
        self._mint = mint
        self._health = health
        self._listening = listening

    def by_name(self) -> dict[str, Journey]:
        return {
            "fetch": self._fetch,
            "fetch_batch": self._fetch_batch,
            "search": self._search,
            "queues": self._queues,
            "workers": self._workers,
            "batches": self._batches,
            "cluster_status": self._health.cluster_status,
            "info": self._health.info,
            "events": self._events,
            "cluster_events": self._cluster_events,
        }

    async def _fetch(self, body: FetchBody, request: Request) -> Answer:
        fetch = new_fetch(body, self._mint.claim_id(), 1)
        claimed = await self._fetching.fetch(fetch, request.hung_up)
        return Answer(200, fetched_job(claimed[0])) if claimed else Answer(204, None)

    async def _fetch_batch(self, body: FetchBatchBody, request: Request) -> Answer:
        fetch = new_fetch(body, self._mint.claim_id(), body.count)
        claimed = await self._fetching.fetch(fetch, request.hung_up)
        return Answer(200, FetchedBatch([fetched_job(job) for job in claimed]))

    async def _search(self, body: SearchBody, request: Request) -> Answer:
        if body.consistent:
            await self._catch_up()
        return Answer(200, await search.answer(self._read_db, body))

    async def _queues(self, body: None, request: Request) -> Answer:
        if parse_query(QueuesQuery, request.query).consistent:
            await self._catch_up()
        return Answer(200, await queues.answer(self._read_db))

    async def _workers(self, body: None, request: Request) -> Answer:
        return Answer(200, await workers.answer(self._read_db))

    async def _batches(self, body: None, request: Request) -> Answer:
        query = parse_query(BatchesQuery, request.query)
        if query.consistent:
            await self._catch_up()
        return Answer(200, await batches_list.answer(self._read_db, query))

    async def _events(self, body: None, request: Request) -> Answer:
        return await self._listening.stream(request)

    async def _cluster_events(self, body: None, request: Request) -> Answer:
        return await self._listening.page(request.query)

    async def _catch_up(self) -> None:
        """Wait until read.db holds everything that was answered, by any node, when the request came."""
        await catch_up(self._shards, self._read_db)
