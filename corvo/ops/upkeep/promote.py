"""Promote: scheduled and retrying jobs whose moment has come become pending."""

from typing import Any, ClassVar

from corvo.lifecycle import Verb
from corvo.limits import UPKEEP_JOBS_PER_ENTRY
from corvo.ops.operation import Operation
from corvo.state.effects import change
from corvo.state.tables import Tables


class Promote(Operation, tag=100):
    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        due = tables.due.over(tables.now, UPKEEP_JOBS_PER_ENTRY)
        for _, job_id, _ in due:
            change(tables, tables.require_job(job_id), Verb.PROMOTE)
        return len(due)
