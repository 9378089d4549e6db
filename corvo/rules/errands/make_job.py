"""MakeJob: create the next job of a chain, a batch or a schedule on the shard of its queue."""

from corvo.rules.errands.errand import Errand
from corvo.rules.job_creation import NewJob, make
from corvo.state.tables import Tables


class MakeJob(Errand, tag=3):
    new: NewJob

    def run(self, tables: Tables) -> None:
        make(tables, self.new)
