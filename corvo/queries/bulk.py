"""Bulk operations, read from the shard that keeps their records."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Query, Read
from corvo.model.job import Count
from corvo.model.limits import BULKS_ENDED_KEPT, JOBS_PER_REQUEST_MAX
from corvo.model.reach import Reach
from corvo.queries.bulk_view import BulkView, bulk_view, in_list, short
from corvo.rules.bulk import BULK_SHARD, Bulk, ended_bulks, find_ids, is_within, open_bulks, require_bulk
from corvo.state.tables import Tables


class GetBulk(Read, tag=1060):
    bulk_id: str

    result: ClassVar[Any] = Bulk

    def read(self, tables: Tables) -> Bulk:
        return short(require_bulk(tables, self.bulk_id))


class ListBulks(Read, tag=1061):
    """Open operations, oldest first, then the newest ended ones."""

    ended_max: Annotated[int, Meta(ge=0, le=BULKS_ENDED_KEPT)] = 0
    reach: Reach | None = None  # None: of every namespace, for the gateways that work on them

    result: ClassVar[Any] = list[Bulk]

    def read(self, tables: Tables) -> list[Bulk]:
        is_open = [bulk for bulk in open_bulks(tables) if self.reach is None or is_within(bulk, self.reach)]
        ended = ended_bulks(tables, self.ended_max, self.reach) if self.ended_max else []
        return [in_list(bulk) for bulk in (*is_open, *ended)]


class GetBulkJobs(Read, tag=1062):
    """A part of the list of jobs of an operation."""

    bulk_id: str
    first: Count
    count: Annotated[int, Meta(ge=1, le=JOBS_PER_REQUEST_MAX)]

    result: ClassVar[Any] = list[str]

    def read(self, tables: Tables) -> list[str]:
        return find_ids(tables, self.bulk_id)[self.first : self.first + self.count]


class BulksQuery(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=BULKS_ENDED_KEPT, description="most ended operations to return")] = 100


class BulkProgress(msgspec.Struct):
    """Data of the events `bulk.async.started`, `progress`, `completed`, `failed` and `cancelled`."""

    type: str
    task_id: str
    status: str
    total: int
    processed: int
    affected: int
    errors: int
    percent: float | None
    rate: float | None
    eta_s: float | None
    created_at_ns: int
    error: str | None = None


def progress_of(bulk: Bulk, kind: str) -> BulkProgress:
    view = bulk_view(bulk)
    return BulkProgress(
        type=f"bulk.async.{kind}",
        task_id=view.id,
        status=view.status,
        total=view.total,
        processed=view.processed,
        affected=view.affected,
        errors=view.errors,
        percent=view.percent,
        rate=view.rate,
        eta_s=view.eta_s,
        created_at_ns=bulk.created_at,
        error=view.error,
    )


def _plan_one(context: PlanContext, body: None, bulk_id: str) -> Plan:
    context.check_bulk_id(bulk_id)

    def conclude(results: list[Bulk]) -> Answer:
        return Answer(200, bulk_view(results[0]))

    return Plan([(BULK_SHARD, GetBulk(bulk_id))], conclude)


def _plan_all(context: PlanContext, query: BulksQuery) -> Plan:
    def conclude(results: list[list[Bulk]]) -> Answer:
        newest_first = sorted(results[0], key=lambda bulk: bulk.id, reverse=True)
        return Answer(200, [bulk_view(bulk) for bulk in newest_first])

    return Plan([(BULK_SHARD, ListBulks(query.limit, context.reach))], conclude)


QUERIES: tuple[type[Query], ...] = (GetBulk, ListBulks, GetBulkJobs)

ENDPOINTS = (
    Endpoint(
        name="bulks",
        access="bulk:read",
        method="GET",
        path="/bulk",
        summary="Bulk operations, newest first",
        query=BulksQuery,
        answers={200: list[BulkView]},
        plan=_plan_all,
    ),
    Endpoint(
        name="get_bulk",
        access="bulk:read",
        method="GET",
        path="/bulk/{bulk_id}",
        summary="One bulk operation: its progress and its errors",
        answers={200: BulkView},
        refusals=("BULK_NOT_FOUND",),
        plan=_plan_one,
    ),
    Endpoint(
        name="bulk_progress",
        access="bulk:read",
        method="GET",
        path="/bulk/{bulk_id}/progress",
        summary="Progress of a bulk operation, as server-sent events until it ends",
        answers={200: BulkProgress},
        media="text/event-stream",
        refusals=("BULK_NOT_FOUND",),
    ),
)
