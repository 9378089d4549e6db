"""MakeJob: a chain, a batch or a schedule has a next job, and its queue lives on another shard."""

from corvo.rules.errands.errand import Errand
from corvo.rules.job_creation import NewJob, make
from corvo.state.tables import Tables


class MakeJob(Errand, tag=3):
    new: NewJob

    def run(self, tables: Tables) -> None:
        make(tables, self.new)
