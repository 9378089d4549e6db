"""Promote: scheduled and retrying jobs that are due become pending."""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.model.lifecycle import Verb
from corvo.model.limits import UPKEEP_JOBS_PER_ENTRY
from corvo.state.tables import Tables
from corvo.state.transitions import change


class Promote(Operation, tag=100):
    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        due = tables.due.over(tables.now, UPKEEP_JOBS_PER_ENTRY)
        for _, job_id, _ in due:
            change(tables, tables.require_job(job_id), Verb.PROMOTE)
        return len(due)
