"""The batches of all shards, newest first."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint
from corvo.queries.batches import BatchView

LIMIT_MAX = 1000


class BatchesQuery(msgspec.Struct, forbid_unknown_fields=True):
    state: Literal["open", "sealed", "completed"] | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 50
    cursor: Annotated[str, Meta(max_length=512, description="`cursor` of the previous page")] | None = None
    consistent: Annotated[bool, Meta(description="include every change that was acknowledged before this request")] = (
        False
    )


class BatchesAnswer(msgspec.Struct):
    batches: list[BatchView]
    has_more: bool
    cursor: str | None
    lag_ms: float


ENDPOINTS = (
    Endpoint(
        name="batches",
        access="batches:read",
        method="GET",
        path="/batches",
        summary="The batches of all shards, newest first",
        query=BatchesQuery,
        answers={200: BatchesAnswer},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
)
