"""What a key with a queue scope may know of: asked before its request is planned, for the ids in it.

The gateway hides the other ids (`PlanContext.hidden`), so that they are answered as ids that were never made.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Query, Read
from corvo.model.errors import Refusal, Refused
from corvo.model.limits import JOBS_PER_REQUEST_MAX
from corvo.model.reach import Reach
from corvo.rules import batches, bulk
from corvo.state.tables import Tables


class FindQueues(Read, tag=1080):
    """The queue of each job."""

    job_ids: Annotated[list[str], Meta(max_length=JOBS_PER_REQUEST_MAX)]

    result: ClassVar[Any] = list[str | Refused]

    def read(self, tables: Tables) -> list[str | Refused]:
        """A job that has moved is looked for where it is now."""
        found: list[str | Refused] = []
        for job_id in self.job_ids:
            try:
                found.append(tables.require_job(job_id).queue)
            except Refusal as refusal:
                found.append(refusal.to_refused())
        return found


class FindOutside(Read, tag=1081):
    """Which of these batches, schedules and bulk operations are not within the reach, or do not exist."""

    reach: Reach
    batch_ids: list[str] = []
    schedules: list[str] = []  # ids or names
    bulk_ids: list[str] = []

    result: ClassVar[Any] = list[str]

    def read(self, tables: Tables) -> list[str]:
        return [
            *(one for one in self.batch_ids if not self._sees_batch(tables, one)),
            *(one for one in self.schedules if not self._sees_schedule(tables, one)),
            *(one for one in self.bulk_ids if not self._sees_bulk(tables, one)),
        ]

    def _sees_batch(self, tables: Tables, batch_id: str) -> bool:
        found = batches.find_batch(tables, batch_id)
        return found is not None and batches.is_within(found, self.reach)

    def _sees_schedule(self, tables: Tables, id_or_name: str) -> bool:
        found = tables.schedules.find(id_or_name)
        return found is not None and self.reach.holds(found.terms.queue)

    def _sees_bulk(self, tables: Tables, bulk_id: str) -> bool:
        found = bulk.find_bulk(tables, bulk_id)
        return found is not None and bulk.is_within(found, self.reach)


QUERIES: tuple[type[Query], ...] = (FindQueues, FindOutside)
