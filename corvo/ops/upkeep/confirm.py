"""Confirm: another shard has run our errands up to a number; the outbox drops them."""

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
        """How many errands were dropped."""
        return tables.errands.confirm(self.target, self.upto)
