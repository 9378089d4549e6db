"""A bulk operation as clients see it: progress, rate, and refused jobs."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from corvo.model.job import PRIORITY_NAMES
from corvo.model.namespaces import shown_name
from corvo.model.timestamps import to_rfc3339, to_rfc3339_or_none
from corvo.rules.bulk import ACTION_NAMES, STATUS_NAMES, Action, Bulk, BulkFailure, Status


class FailureView(msgspec.Struct):
    job_id: str
    code: str
    error: str


class BulkView(msgspec.Struct, kw_only=True):
    id: str
    status: Annotated[str, Meta(description="queued, running, completed, failed or cancelled")]
    action: str
    total: Annotated[int, Meta(description="jobs that matched at its start")]
    total_is_exact: Annotated[bool, Meta(description="false: there were more than `total`")]
    processed: int
    affected: Annotated[int, Meta(description="jobs that were changed")]
    errors: Annotated[int, Meta(description="jobs that were refused and not changed")]
    percent: float | None = None
    rate: Annotated[float | None, Meta(description="jobs per second, since a gateway claimed it")] = None
    eta_s: Annotated[float | None, Meta(description="remaining seconds at this rate")] = None
    error_codes: Annotated[dict[str, int], Meta(description="refused jobs by code")] = {}
    error_samples: Annotated[list[FailureView], Meta(description="the first hundred of them; not in lists")] = []
    created_at: str
    updated_at: str
    started_at: str | None = None
    finished_at: str | None = None
    cancel_requested: bool = False
    error: Annotated[str | None, Meta(description="why it failed")] = None
    filter: Annotated[Any, Meta(description="the search; null for a list of jobs")] = None
    move_to_queue: str | None = None
    priority: str | None = None


def bulk_view(bulk: Bulk) -> BulkView:
    tally, order = bulk.tally, bulk.order
    rate = _rate(bulk)
    left = max(bulk.total - tally.processed, 0)
    return BulkView(
        id=bulk.id,
        status=STATUS_NAMES[bulk.status],
        action=ACTION_NAMES[order.action],
        total=bulk.total,
        total_is_exact=bulk.total_is_exact,
        processed=tally.processed,
        affected=tally.affected,
        errors=sum(tally.errors.values()),
        percent=_percent(bulk),
        rate=rate,
        eta_s=round(left / rate, 1) if rate and bulk.status is Status.RUNNING and bulk.total_is_exact else None,
        error_codes=tally.errors,
        error_samples=failure_views(tally.samples),
        created_at=to_rfc3339(bulk.created_at),
        updated_at=to_rfc3339(bulk.updated_at),
        started_at=to_rfc3339_or_none(bulk.started_at),
        finished_at=to_rfc3339_or_none(bulk.finished_at),
        cancel_requested=bulk.is_cancelling,
        error=bulk.failure or None,
        filter=msgspec.Raw(bulk.filter) if bulk.filter else None,
        move_to_queue=None if order.queue is None else shown_name(order.queue),
        priority=PRIORITY_NAMES[order.priority] if order.action is Action.CHANGE_PRIORITY else None,
    )


def failure_views(samples: list[BulkFailure]) -> list[FailureView]:
    return [FailureView(one.job_id, one.code, one.message) for one in samples]


def short(bulk: Bulk) -> Bulk:
    """For lists: without the long fields."""
    return msgspec.structs.replace(bulk, slice=[])


def in_list(bulk: Bulk) -> Bulk:
    return msgspec.structs.replace(bulk, slice=[], tally=msgspec.structs.replace(bulk.tally, samples=[]))


def _rate(bulk: Bulk) -> float | None:
    took_s = (bulk.updated_at - bulk.claimed_at) / 1e9
    done = bulk.tally.processed - bulk.claimed_processed
    return round(done / took_s, 1) if bulk.claimed_at and took_s > 0 and done else None


def _percent(bulk: Bulk) -> float | None:
    if bulk.status is Status.COMPLETED:
        return 100.0
    if not bulk.total_is_exact:
        return None
    return round(min(bulk.tally.processed / bulk.total, 1.0) * 100, 1) if bulk.total else 100.0
