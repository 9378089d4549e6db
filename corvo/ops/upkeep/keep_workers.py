"""KeepWorkers: after how long a worker that says nothing is removed.

The leader proposes it when its setting (`--worker-timeout`) differs from the state, so that every replica removes the
same workers. A worker that is known already is looked at when its former time is over, or later.
"""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.model.job import Count
from corvo.state.tables import Tables


class KeepWorkers(Operation, tag=107):
    timeout_ms: Count

    result: ClassVar[Any] = bool

    def apply(self, tables: Tables) -> bool:
        """Whether that is news."""
        if tables.worker_timeout_ms == self.timeout_ms:
            return False
        tables.set_worker_timeout(self.timeout_ms)
        return True
