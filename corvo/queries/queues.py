"""All queues with exact counts per state."""

import msgspec

from corvo.ops.operation import Endpoint


class QueueView(msgspec.Struct, kw_only=True):
    name: str
    paused: bool = False
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
