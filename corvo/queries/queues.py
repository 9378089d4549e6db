"""All queues with exact counts per state, rates and the age of the oldest pending job."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint


class QueueView(msgspec.Struct, kw_only=True):
    name: str
    status: Annotated[str, Meta(description="`active`, `paused`, `draining` or `drained`")] = "active"
    paused: bool = False
    max_concurrency: int | None = None
    rate_limit: int | None = None
    rate_window_ms: int | None = None
    created_at: str
    pending: int
    active: int
    held: int
    completed: int
    dead: int
    scheduled: int
    retrying: int
    cancelled: int
    enqueued: Annotated[int, Meta(description="jobs, ever")]
    completed_total: Annotated[int, Meta(description="jobs, ever")] = 0
    failed: Annotated[int, Meta(description="attempts, ever")]
    dead_total: Annotated[int, Meta(description="jobs, ever")] = 0
    enqueued_per_s: Annotated[float, Meta(description="over the last full minute and the current one")] = 0.0
    completed_per_s: float = 0.0
    failed_per_s: Annotated[float, Meta(description="attempts")] = 0.0
    oldest_pending_at: Annotated[str | None, Meta(description="when the oldest pending job was created")] = None
    oldest_pending_age_ms: int | None = None


class QueuesQuery(msgspec.Struct, forbid_unknown_fields=True):
    consistent: bool = False


ENDPOINTS = (
    Endpoint(
        name="queues",
        access="queues:read",
        method="GET",
        path="/queues",
        summary="All queues with their counts and rates",
        query=QueuesQuery,
        answers={200: list[QueueView]},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
)
