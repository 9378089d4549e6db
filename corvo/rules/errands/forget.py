"""Forget: a job that had moved was deleted. Each shard that it passed through drops its note of where the job went."""

from corvo.rules.errands.errand import Errand
from corvo.state import keys
from corvo.state.tables import Tables


class Forget(Errand, tag=9):
    job_id: str

    def run(self, tables: Tables) -> None:
        if tables.forwarded_to(self.job_id) is not None:
            tables.put(keys.forwarded(self.job_id), None)
