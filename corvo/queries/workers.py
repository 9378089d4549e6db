"""Workers that have claimed jobs, and workers that wait for one."""

import msgspec

from corvo.endpoint import Endpoint


class WorkerView(msgspec.Struct, kw_only=True):
    id: str
    hostname: str
    queues: list[str]
    last_heartbeat: str
    started_at: str
    is_waiting: bool = False
    active_jobs: int = 0
    pool_size: int = 0
    version: str = ""


ENDPOINTS = (
    Endpoint(
        name="workers",
        access="workers:read",
        method="GET",
        path="/workers",
        summary="Workers, newest first",
        answers={200: list[WorkerView]},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
)
