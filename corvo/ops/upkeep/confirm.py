"""Confirm: another shard has done our errands up to a number, and the outbox forgets them."""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.model.job import Count
from corvo.ops.upkeep.deliver import ShardNumber
from corvo.state.tables import Tables


class Confirm(Operation, tag=104):
    target: ShardNumber
    upto: Count

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """How many were forgotten."""
        return tables.errands.confirm(self.target, self.upto)
