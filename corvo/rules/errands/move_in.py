"""MoveIn: a job arrives from another shard, with its errors and watchers, and keeps its id.

The shard that it left stores where it went. When a job comes back to a shard, that note is dropped.
"""

from corvo.model.events import EventKind
from corvo.model.job import Job, JobError
from corvo.model.lifecycle import SETTLED
from corvo.rules.errands.errand import Errand
from corvo.state import keys, locks
from corvo.state.tables import Tables
from corvo.state.transitions import reindex


class MoveIn(Errand, tag=5):
    job: Job
    errors: list[JobError]
    watchers: list[str]  # jobs that wait for it
    data: bytes = b""  # of the event

    def run(self, tables: Tables) -> None:
        job = self.job
        tables.put(keys.forwarded(job.id), None)
        reindex(tables, job)
        for error in self.errors:
            tables.add_error(error)
        for dependent in self.watchers:
            tables.put(keys.watcher(job.id, dependent), b"")
        arrive(tables, job, self.data)


def arrive(tables: Tables, job: Job, data: bytes) -> None:
    """The last part of a move, on this shard or another."""
    locks.lock_if_free(tables, job)
    if job.state in SETTLED:
        tables.retire(job)  # the retention of its new queue applies
    tables.event_log.tell(EventKind.MOVED, job.id, job.queue, data)
