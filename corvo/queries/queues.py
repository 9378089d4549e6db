"""All queues with exact counts per state."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.ops.operation import Endpoint


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
    enqueued: int
    failed: int
    oldest_pending_at: str | None = None


class QueuesQuery(msgspec.Struct, forbid_unknown_fields=True):
    consistent: bool = False


ENDPOINTS = (
    Endpoint(
        name="queues",
        method="GET",
        path="/queues",
        summary="All queues with their counts",
        query=QueuesQuery,
        answers={200: list[QueueView]},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
)
