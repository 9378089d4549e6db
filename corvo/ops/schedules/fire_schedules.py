"""FireSchedules: fire the slots that are due. The leader proposes it, with all times computed.

Replicas may have different time zone data during an upgrade, so none of them computes a slot here. A firing for an old
version of a schedule does nothing, so two leaders may propose the same one.
"""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.rules.schedules import Firing, fire
from corvo.state.tables import Tables


class FireSchedules(Operation, tag=45):
    firings: list[Firing]

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """How many slots fired."""
        return sum(fire(tables, firing) for firing in self.firings)
