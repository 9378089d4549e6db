"""FireSchedules: slots whose moment has come. The leader asks it of itself, with all the numbers in it.

Replicas may know different time zones during an upgrade: none of them works out a slot here. A firing for a version of
a schedule that is no more does nothing, so the same one may be proposed by two leaders.
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
