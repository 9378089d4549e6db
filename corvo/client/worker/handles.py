"""Handles of what was enqueued: look at a job, wait for its result."""

import time
from collections.abc import Callable
from typing import Any

from ..answers import JobView
from ..http import Client

POLL_S_FIRST, POLL_S_MAX = 0.05, 1.0

OpenClient = Callable[[], Client]


class JobFailed(Exception):
    """The job ended without a result. `job` tells its state and its errors."""

    def __init__(self, job: JobView) -> None:
        why = job.errors[-1].error if job.errors else "no error was recorded"
        super().__init__(f"job {job.id} is {job.state}: {why}")
        self.job = job


class JobHandle:
    """A job that was enqueued, or that another one stood for."""

    def __init__(self, client: OpenClient, job_id: str, status: str = "", is_duplicate: bool = False) -> None:
        self.id = job_id
        self.status = status  # when it was enqueued
        self.is_duplicate = is_duplicate  # another job held its key: this is that job
        self._client = client

    def __repr__(self) -> str:
        return f"<job {self.id}>"

    def get(self) -> JobView:
        """The job as it is now."""
        return self._client().get_job(self.id)

    def result(self, timeout: float = 60.0) -> Any:
        """Waits until the job is completed, and returns its result. Raises `JobFailed`, or TimeoutError."""
        deadline, pause = time.monotonic() + timeout, POLL_S_FIRST
        while True:
            job = self.get()
            if job.state == "completed":
                return job.result
            if job.state in ("dead", "cancelled"):
                raise JobFailed(job)
            if time.monotonic() + pause > deadline:
                raise TimeoutError(f"job {self.id} is still {job.state} after {timeout:g} s")
            time.sleep(pause)
            pause = min(2 * pause, POLL_S_MAX)


class BatchHandle:
    """A batch that was enqueued: its id, and its jobs in order."""

    def __init__(self, client: OpenClient, batch_id: str, job_ids: list[str]) -> None:
        self.id = batch_id
        self.jobs = [JobHandle(client, job_id) for job_id in job_ids]
