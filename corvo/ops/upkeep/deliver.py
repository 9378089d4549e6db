"""Deliver: run errands of another shard, each once.

The courier of the sending shard sends it to the target shard. Errands that ran before are skipped, so it can be
repeated safely. The result is the number of the last errand that ran; with it the sender's leader proposes `Confirm`.
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
