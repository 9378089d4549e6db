"""Several shards in memory, with couriers between them: the whole of what crosses shards, without a process.

`apply` asks one shard; `carry` brings errands over until none is left. A step of the courier's way can be left out or
repeated at will: `deliver` and `confirm` are the two that exist.
"""

from typing import Any

from corvo.endpoint import Operation
from corvo.model.limits import DELIVERY_BYTES_MAX, ERRANDS_PER_DELIVERY
from corvo.model.sharding import shard_of_queue
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.ops.upkeep.ring import Ring
from tests.support.builders import NOW
from tests.support.machine import Machine


def queue_on(shard: int, count: int = 3, stem: str = "queue") -> str:
    """A name of a queue that lives on this shard."""
    return next(name for number in range(10_000) if shard_of_queue(name := f"{stem}-{number}", count) == shard)


class Shards:
    def __init__(self, count: int = 3) -> None:
        self.machines = [Machine(shard, count) for shard in range(count)]
        self.now = NOW

    def __getitem__(self, shard: int) -> Machine:
        return self.machines[shard]

    def of_queue(self, queue: str) -> Machine:
        return self.machines[shard_of_queue(queue, len(self.machines))]

    def of_id(self, name: str) -> Machine:
        """The shard in the id of a job or batch."""
        return self.machines[int(name[1:3])]

    def one(self, shard: int, operation: Operation) -> Any:
        """Ask one shard, and let all that follows from it happen."""
        result = self.machines[shard].one(operation, at=self.now)
        self.carry()
        return result

    def pass_time(self, ns: int) -> None:
        """Let time pass for all, and what falls due happen."""
        self.now += ns
        for machine in self.machines:
            machine.apply(Promote(), Ring(), Reclaim(), at=self.now)
        self.carry()

    def carry(self) -> None:
        for _ in range(1_000):
            ways = [(source, target) for source in self.machines for target in source.tables.errands.targets()]
            if not ways:
                return
            for source, target in ways:
                self.confirm(source, target, self.deliver(source, target))
        raise AssertionError("errands never end")

    def deliver(self, source: Machine, target: int) -> int:
        """The first step: the target does what is new to it; the number of the last errand done."""
        errands = source.tables.errands
        first, raws = errands.waiting(target, ERRANDS_PER_DELIVERY, DELIVERY_BYTES_MAX)
        done: int = self.machines[target].one(Deliver(errands.shard, first, raws), at=self.now)
        return done

    def confirm(self, source: Machine, target: int, done: int) -> None:
        """The second step: the source forgets what is done."""
        source.one(Confirm(target, done), at=self.now)

    def check(self) -> None:
        for machine in self.machines:
            machine.check()
