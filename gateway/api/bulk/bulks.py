"""Assembles the parts of bulk actions in one gateway."""

import asyncio

from corvo.endpoint import PlanContext
from gateway.api.bulk.acting import Acting
from gateway.api.bulk.progress import ProgressStream
from gateway.api.bulk.requests import Requests
from gateway.api.bulk.running import Running
from gateway.routes import Handler
from gateway.search.database import ReadDb
from gateway.shards.client import Shards


class Bulks:
    def __init__(
        self, shards: Shards, read_db: ReadDb, context: PlanContext, seat: str, draining: asyncio.Event
    ) -> None:
        acting = Acting(shards)
        self.running = Running(shards, read_db, context, acting, seat)
        self.progress = ProgressStream(shards, draining)
        self._requests = Requests(shards, read_db, acting, self.running)
        self._work: asyncio.Task[None] | None = None

    def by_name(self) -> dict[str, Handler]:
        return {"bulk": self._requests.bulk, "bulk_progress": self.progress.stream}

    def start(self) -> None:
        self._work = asyncio.ensure_future(self.running.run())

    async def stop(self) -> None:
        """Another gateway, or this one after its restart, takes over the running operations."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
