"""KeepEnded: how long ended jobs are kept where their queue says nothing.

The leader proposes it when its setting (`--retention`) differs from the state, so that every replica applies the same
span. It counts for jobs that end from now on; earlier ones are deleted when they were to be, or later.
"""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.model.job import Count
from corvo.state.tables import Tables


class KeepEnded(Operation, tag=106):
    retention_ms: Count  # 0: for ever

    result: ClassVar[Any] = bool

    def apply(self, tables: Tables) -> bool:
        """Whether that is news."""
        if tables.default_retention_ms == self.retention_ms:
            return False
        tables.set_default_retention(self.retention_ms)
        return True
