"""The jobs of a bulk action, in slices: jobs named in the request, or jobs that match a filter.

A filter is pinned to the time of the request, so jobs created later are not touched. Its jobs are read in pages from
the read database, in the order of creation, which no action changes. So a cursor stays valid later, in another process
and on another node.
"""

from typing import NamedTuple, Protocol

import msgspec

from corvo.model.errors import Refusal
from corvo.model.limits import BULK_SLICE
from corvo.model.name_fields import qualify_names, show_names
from corvo.model.namespaces import DEFAULT, namespace_of_id
from corvo.model.reach import Reach
from corvo.model.timestamps import parse_rfc3339, to_rfc3339
from corvo.queries.bulk import GetBulkJobs
from corvo.queries.search import SearchBody
from corvo.rules.bulk import BULK_SHARD, Bulk
from gateway.search import search
from gateway.search.database import ReadDb, TenantDb
from gateway.search.lag import catch_up
from gateway.shards.client import Shards

_decode_filter = msgspec.json.Decoder(SearchBody).decode


class MatchPage(NamedTuple):
    job_ids: list[str]
    cursor: str
    is_last: bool


class Jobs(Protocol):
    async def prepare(self) -> None:
        """Called before this process reads its first page."""

    async def page(self, cursor: str) -> MatchPage: ...


class Named:
    """Jobs named by id in the request."""

    def __init__(self, job_ids: list[str]) -> None:
        self._job_ids = job_ids

    async def prepare(self) -> None:
        pass

    async def page(self, cursor: str) -> MatchPage:
        first = int(cursor or 0)
        behind = first + BULK_SLICE
        return MatchPage(self._job_ids[first:behind], str(behind), behind >= len(self._job_ids))


class Stored:
    """Jobs named by id in an operation; the shard with its record stores the ids."""

    def __init__(self, shards: Shards, bulk_id: str) -> None:
        self._shards = shards
        self._bulk_id = bulk_id

    async def prepare(self) -> None:
        pass

    async def page(self, cursor: str) -> MatchPage:
        first = int(cursor or 0)
        found: list[str] = await self._shards.ask(BULK_SHARD, GetBulkJobs(self._bulk_id, first, BULK_SLICE))
        return MatchPage(found, str(first + len(found)), len(found) < BULK_SLICE)


class Matching:
    """All jobs that match a filter."""

    def __init__(self, shards: Shards, read_db: TenantDb, wanted: SearchBody) -> None:
        self._shards = shards
        self._read_db = read_db
        self._wanted = wanted

    async def prepare(self) -> None:
        await catch_up(self._shards, self._read_db)

    async def page(self, cursor: str) -> MatchPage:
        """A page may be empty and yet not the last: a search stops at its time limit, however few jobs match."""
        body = msgspec.structs.replace(
            self._wanted, sort="created_at", order="asc", limit=BULK_SLICE, cursor=cursor or None
        )
        found = await search.answer(self._read_db, body)
        return MatchPage([job.id for job in found.jobs], found.cursor or "", found.cursor is None)


def jobs_of(shards: Shards, read_db: ReadDb, bulk: Bulk) -> Jobs:
    if not bulk.filter:
        return Stored(shards, bulk.id)
    try:
        wanted = _decode_filter(bulk.filter)
        namespace = namespace_of_id(bulk.id)
        if namespace != DEFAULT:
            qualify_names(wanted, namespace)
        return Matching(shards, read_db.within(Reach(namespace, bulk.order.scope)), wanted)
    except msgspec.MsgspecError as error:  # written by a newer version
        raise Refusal("VALIDATION_ERROR", f"filter: this gateway cannot decode it: {error}", field="filter") from None


def stored(wanted: SearchBody) -> bytes:
    """The filter for the record of an operation, with names as the tenant knows them: they are shown to it, and read
    again as a tenant's filter is."""
    shown = msgspec.structs.replace(wanted)
    show_names(shown)
    return msgspec.json.encode(shown)


def pinned(wanted: SearchBody, now_ns: int) -> SearchBody:
    """The filter, limited to jobs that exist now."""
    return msgspec.structs.replace(wanted, created_before=_sooner(wanted.created_before, now_ns))


def _sooner(text: str | None, now_ns: int) -> str:
    if text is not None:
        try:
            now_ns = min(parse_rfc3339(text), now_ns)
        except ValueError:
            return text  # the search refuses it and gives the reason
    return to_rfc3339(now_ns)
