"""Errors grouped by fingerprint and counted, the most frequent first."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint
from corvo.model.job import QueueName

LIMIT_MAX = 1000


class ErrorGroupsQuery(msgspec.Struct, forbid_unknown_fields=True):
    queue: QueueName | None = None
    since: Annotated[str, Meta(description="only failures at or after this time, RFC 3339")] | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 50
    consistent: Annotated[bool, Meta(description="include every change that was acknowledged before this request")] = (
        False
    )


class ErrorGroup(msgspec.Struct):
    fingerprint: str
    queue: Annotated[str, Meta(description="where the attempts failed")]
    message: Annotated[str, Meta(description="the first line of the error, with placeholders for the parts that vary")]
    count: Annotated[int, Meta(description="failures of jobs that are kept")]
    first_at: str
    last_at: str
    sample_error: Annotated[str, Meta(description="the newest")]
    sample_job_id: str


class ErrorGroupsAnswer(msgspec.Struct):
    groups: list[ErrorGroup]
    has_more: Annotated[bool, Meta(description="there are more groups than the limit")]
    lag_ms: float


ENDPOINTS = (
    Endpoint(
        name="error_groups",
        access="jobs:list",
        method="GET",
        path="/errors/groups",
        summary="Failures grouped by their message, the most frequent first",
        query=ErrorGroupsQuery,
        answers={200: ErrorGroupsAnswer},
        refusals=("VALIDATION_ERROR", "READ_DB_UNAVAILABLE"),
    ),
)
