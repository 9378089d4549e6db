"""Which of some job ids a shard does not know. Asked before a job is created that waits for them."""

from typing import Any, ClassVar

from corvo.endpoint import Read
from corvo.state.tables import Tables


class FindUnknown(Read, tag=1052):
    job_ids: list[str]

    result: ClassVar[Any] = list[str]

    def read(self, tables: Tables) -> list[str]:
        """A job that has moved to another shard is known."""
        return [
            job_id for job_id in self.job_ids if tables.find_job(job_id) is None and tables.forwarded_to(job_id) is None
        ]
