"""What happened minute by minute, in one queue or in all, oldest minute first."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint
from corvo.state.minutes import MINUTES_KEPT


class ThroughputQuery(msgspec.Struct, forbid_unknown_fields=True):
    minutes: Annotated[int, Meta(ge=1, le=MINUTES_KEPT, description="so many, the running one included")] = 60
    consistent: Annotated[bool, Meta(description="wait for everything that was answered before this request")] = False


class ThroughputPoint(msgspec.Struct):
    """A minute in which nothing happened is there too, with zeros."""

    minute: Annotated[str, Meta(description="when it began, RFC 3339; the last one is not over")]
    enqueued: Annotated[int, Meta(description="jobs")]
    completed: Annotated[int, Meta(description="jobs")]
    failed: Annotated[int, Meta(description="attempts")]
    dead: Annotated[int, Meta(description="jobs")]


ENDPOINTS = (
    Endpoint(
        name="throughput",
        method="GET",
        path="/metrics/throughput",
        summary="What happened minute by minute, over all queues; kept for a day",
        query=ThroughputQuery,
        answers={200: list[ThroughputPoint]},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
    Endpoint(
        name="queue_throughput",
        method="GET",
        path="/queues/{name}/throughput",
        summary="What happened in a queue minute by minute; kept for a day",
        query=ThroughputQuery,
        answers={200: list[ThroughputPoint]},
        refusals=("VALIDATION_ERROR", "QUEUE_NOT_FOUND", "READ_DB_UNAVAILABLE"),
    ),
)
