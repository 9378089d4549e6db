"""One worker with its active jobs."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint
from corvo.queries.workers import WorkerView

JOBS_SHOWN_MAX = 1000


class WorkerJob(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    queue: str
    attempt: int
    started_at: Annotated[str | None, Meta(description="of this attempt")] = None
    lease_expires_at: str | None = None
    progress: Any = None


class WorkerDetail(WorkerView, kw_only=True):
    jobs: Annotated[
        list[WorkerJob], Meta(description=f"its active jobs, longest running first, at most {JOBS_SHOWN_MAX}")
    ]


ENDPOINTS = (
    Endpoint(
        name="get_worker",
        access="workers:read",
        method="GET",
        path="/workers/{worker_id}",
        summary="One worker with its active jobs",
        answers={200: WorkerDetail},
        refusals=("WORKER_NOT_FOUND", "READ_DB_UNAVAILABLE"),
    ),
)
