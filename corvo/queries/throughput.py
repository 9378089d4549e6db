"""Counts by the minute, of one queue or of all, oldest minute first."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint
from corvo.state.minutes import MINUTES_KEPT


class ThroughputQuery(msgspec.Struct, forbid_unknown_fields=True):
    minutes: Annotated[int, Meta(ge=1, le=MINUTES_KEPT, description="number of minutes, the current one included")] = 60
    consistent: Annotated[bool, Meta(description="include every change that was acknowledged before this request")] = (
        False
    )


class ThroughputPoint(msgspec.Struct):
    """A minute without changes is included, with zeros."""

    minute: Annotated[str, Meta(description="its start, RFC 3339; the last minute is not over")]
    enqueued: Annotated[int, Meta(description="jobs")]
    completed: Annotated[int, Meta(description="jobs")]
    failed: Annotated[int, Meta(description="attempts")]
    dead: Annotated[int, Meta(description="jobs")]


ENDPOINTS = (
    Endpoint(
        name="throughput",
        access="metrics:read",
        method="GET",
        path="/metrics/throughput",
        summary="Counts by the minute over all queues; kept for a day",
        query=ThroughputQuery,
        answers={200: list[ThroughputPoint]},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
    Endpoint(
        name="queue_throughput",
        access="queues:read",
        method="GET",
        path="/queues/{name}/throughput",
        summary="Counts of a queue by the minute; kept for a day",
        query=ThroughputQuery,
        answers={200: list[ThroughputPoint]},
        refusals=("VALIDATION_ERROR", "QUEUE_NOT_FOUND", "READ_DB_UNAVAILABLE"),
    ),
)
