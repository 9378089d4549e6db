"""Deliver: errands of another shard are done here, each once.

It is asked of the shard that the errands are for, by the courier of the one that gives them; what was done
before is passed over, so it may be asked as often as anybody likes. Its result is the number of the last errand done.
With that the giver's leader asks `Confirm` of itself.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Compound, Steps
from corvo.model.job import Count
from corvo.model.limits import SHARDS_MAX
from corvo.rules.errands.register import decode_errand
from corvo.state.tables import Tables

ShardNumber = Annotated[int, Meta(ge=0, lt=SHARDS_MAX)]


class Deliver(Compound, tag=103):
    source: ShardNumber
    first: Count  # number of the first errand
    errands: list[bytes]

    result: ClassVar[Any] = int

    def steps(self, tables: Tables) -> Steps[int]:
        for number, raw in enumerate(self.errands, self.first):
            if tables.errands.receive(self.source, number):
                yield decode_errand(raw).run
        return tables.errands.received.get(self.source, 0)
