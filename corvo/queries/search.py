"""Search: jobs of all shards by queue, state and time, newest first or last."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from corvo.job import JobId, QueueName, ShortText, WorkerId
from corvo.ops.operation import Body, Endpoint

StateName = Literal["pending", "active", "completed", "retrying", "dead", "cancelled", "scheduled", "held"]
LIMIT_MAX = 1000


class SearchBody(Body):
    queue: QueueName | None = None
    state: Annotated[list[StateName], Meta(max_length=8)] = []
    priority: Literal["critical", "high", "normal"] | None = None
    worker_id: WorkerId | None = None
    job_id_prefix: JobId | None = None
    parent_id: JobId | None = None
    unique_key: ShortText | None = None
    batch_id: JobId | None = None
    chain_id: JobId | None = None
    created_after: str | None = None
    created_before: str | None = None
    scheduled_after: str | None = None
    scheduled_before: str | None = None
    started_after: str | None = None
    started_before: str | None = None
    completed_after: str | None = None
    completed_before: str | None = None
    order: Literal["asc", "desc"] = "desc"
    cursor: Annotated[str, Meta(max_length=512)] | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 50
    consistent: bool = False


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


class SearchAnswer(msgspec.Struct):
    jobs: list[JobSummary]
    total: int
    total_is_exact: bool
    has_more: bool
    cursor: str | None
    duration_ms: float
    lag_ms: float


ENDPOINTS = (
    Endpoint(
        name="search",
        method="POST",
        path="/jobs/search",
        summary="Search the jobs of all shards",
        body=SearchBody,
        body_optional=True,
        answers={200: SearchAnswer},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
)
