"""MakeJob: a chain, a batch or a schedule has a next job, and its queue lives on another shard."""

from corvo.birth import NewJob, make
from corvo.errands.errand import Errand
from corvo.state.tables import Tables


class MakeJob(Errand, tag=3):
    new: NewJob

    def run(self, tables: Tables) -> None:
        make(tables, self.new)
