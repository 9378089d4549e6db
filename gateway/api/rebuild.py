"""`POST /admin/rebuild-read-db`: requests a rebuild from the mirror and optionally waits for it.

The mirror sees the request within a second (`readdb/rebuild_request.py`). The rebuild is done when the generation
changes.
"""

import asyncio
import time
from pathlib import Path

from corvo.endpoint import Answer
from corvo.model.errors import Refusal
from corvo.queries.rebuild import RebuildQuery, RebuildView
from gateway.http.messages import Request
from gateway.readdb import rebuild_request as requests
from gateway.search.database import ReadDb
from gateway.search.lag import Lag, read_lag

WAIT_S_MAX = 60.0
_LOOK_EVERY_S = 0.05


class Rebuilding:
    def __init__(self, data_dir: Path, read_db: ReadDb) -> None:
        self._data_dir = data_dir
        self._read_db = read_db

    async def ask(self, query: RebuildQuery, request: Request) -> Answer:
        return await self._rebuild(query, request, waits=False)

    async def ask_and_wait(self, query: RebuildQuery, request: Request) -> Answer:
        """Clients of `rebuild-sqlite` expect the answer after the rebuild."""
        return await self._rebuild(query, request, waits=True)

    async def _rebuild(self, query: RebuildQuery, request: Request, waits: bool) -> Answer:
        waits = waits if query.wait is None else query.wait
        before = await self._look()
        generation = "" if before is None else before.generation
        requests.leave(self._data_dir)
        is_gone = asyncio.ensure_future(request.hung_up())
        try:
            deadline = time.monotonic() + (WAIT_S_MAX if waits else 0.0)
            while time.monotonic() < deadline and not is_gone.done():
                await asyncio.sleep(_LOOK_EVERY_S)
                now = await self._look()
                if now is not None and now.generation != generation:
                    return Answer(200, RebuildView("ok", True, now.generation, round(now.rebuild_ms, 3)))
        finally:
            is_gone.cancel()
        return Answer(202, RebuildView("building", False, generation))

    async def _look(self) -> Lag | None:
        """None if the read database cannot be read: it is being built already."""
        try:
            return await read_lag(self._read_db)
        except Refusal:
            return None
