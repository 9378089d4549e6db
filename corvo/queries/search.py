"""Search: jobs of all shards by fields and by text, in any order, in pages."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import Body, Endpoint
from corvo.model.job import JobId, QueueName, ShortText, WorkerId

StateName = Literal["pending", "active", "completed", "retrying", "dead", "cancelled", "scheduled", "held"]
SortName = Literal["created_at", "priority", "started_at", "completed_at", "attempt", "scheduled_at", "failed_at"]
LIMIT_MAX = 1000
FULLTEXT_LIMIT_MAX = 500
TAGS_MAX = 16
ATTEMPT_MAX = 2**31 - 1

Needle = Annotated[str, Meta(min_length=1, max_length=1024, description="exact text, case-sensitive")]
Attempts = Annotated[int, Meta(ge=0, le=ATTEMPT_MAX)]


class SearchBody(Body):
    """Filters, all of which must match. `_after` and `_before` exclude the given time."""

    queue: QueueName | None = None
    state: Annotated[list[StateName], Meta(max_length=8, description="any of these; default all states")] = []
    priority: Literal["critical", "high", "normal"] | None = None
    worker_id: WorkerId | None = None
    job_id_prefix: JobId | None = None
    parent_id: JobId | None = None
    unique_key: ShortText | None = None
    batch_id: JobId | None = None
    chain_id: JobId | None = None
    tags: Annotated[
        dict[str, str | int | float | bool], Meta(max_length=TAGS_MAX, description="all of these, type included")
    ] = {}
    payload_contains: Needle | None = None
    payload_jq: Annotated[str, Meta(min_length=1, max_length=2048)] | None = None
    has_errors: Annotated[bool, Meta(description="whether any attempt has failed")] | None = None
    error_contains: Needle | None = None
    attempt_min: Attempts | None = None
    attempt_max: Attempts | None = None
    created_after: str | None = None
    created_before: str | None = None
    scheduled_after: str | None = None
    scheduled_before: str | None = None
    started_after: str | None = None
    started_before: str | None = None
    completed_after: str | None = None
    completed_before: str | None = None
    expire_after: str | None = None
    expire_before: str | None = None
    sort: Annotated[SortName, Meta(description="jobs without such a time come last, in either order")] = "created_at"
    order: Literal["asc", "desc"] = "desc"
    cursor: Annotated[str, Meta(max_length=512, description="`cursor` of the previous page")] | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 50
    consistent: Annotated[bool, Meta(description="include every change that was acknowledged before this request")] = (
        False
    )


class JobSummary(msgspec.Struct, omit_defaults=True):
    id: str
    queue: str
    state: str
    payload: Any
    priority: int
    attempt: int
    max_retries: int
    created_at: str
    worker_id: str | None = None
    tags: Any = None
    parent_id: str | None = None
    scheduled_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    failed_at: str | None = None
    last_error: str | None = None
    unique_key: str | None = None
    batch_id: str | None = None
    chain_id: str | None = None
    chain_step: int | None = None
    hold_reason: str | None = None
    expire_at: str | None = None


class SearchAnswer(msgspec.Struct):
    jobs: list[JobSummary]
    total: int
    total_is_exact: bool
    has_more: Annotated[bool, Meta(description="more may follow: continue with `cursor`")]
    cursor: str | None
    duration_ms: float
    lag_ms: float
    total_relation: Annotated[
        Literal["exact", "at_least"], Meta(description="`at_least` if `total_is_exact` is false")
    ] = "exact"
    is_complete: Annotated[
        bool,
        Meta(description="false: the search ran out of time before the page was full; `cursor` continues it"),
    ] = True
    sealed_unsearched: Annotated[
        bool, Meta(description="true: payloads are encrypted, and the search by payload did not look into those")
    ] = False


class FulltextQuery(msgspec.Struct, forbid_unknown_fields=True):
    q: Annotated[str, Meta(min_length=1, max_length=1024, description="words that must all occur")]
    limit: Annotated[int, Meta(ge=1, le=FULLTEXT_LIMIT_MAX)] = 50
    consistent: Annotated[bool, Meta(description="include every change that was acknowledged before this request")] = (
        False
    )


class FulltextHit(msgspec.Struct):
    id: str
    queue: str
    state: str
    payload: Any
    tags: Any
    created_at: str


class FulltextAnswer(msgspec.Struct):
    q: str
    results: Annotated[list[FulltextHit], Meta(description="most recently indexed first")]
    has_more: bool
    is_complete: Annotated[bool, Meta(description="false: too many jobs are new to check all of them")]
    duration_ms: float
    lag_ms: float
    sealed_unsearched: Annotated[
        bool, Meta(description="true: payloads are encrypted, and their words are not in the index")
    ] = False


ENDPOINTS = (
    Endpoint(
        name="search",
        access="jobs:list",
        method="POST",
        repeats="freely",
        path="/jobs/search",
        summary="Search the jobs of all shards",
        body=SearchBody,
        body_optional=True,
        example={"queue": "emails.send", "state": ["dead"], "limit": 5},
        answers={200: SearchAnswer},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
    Endpoint(
        name="fulltext",
        access="jobs:list",
        method="GET",
        path="/search/fulltext",
        summary="Jobs whose payload, tags, result or errors contain all of these words",
        query=FulltextQuery,
        answers={200: FulltextAnswer},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
)
