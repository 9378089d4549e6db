"""A house with three shards whose jobs stand in `read.db`, as the mirror would have written them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from corvo.model.lifecycle import State
from corvo.model.sharding import shard_of_queue
from tests.gateway.asgi import Reply
from tests.gateway.search.conftest import Written
from tests.gateway.whole_house import WholeHouse
from tests.support.builders import NOW, SECOND
from tests.support.read_dbs import FilePlace

T = TypeVar("T")
SHARDS = 3
# One queue on each shard.
QUEUES = tuple(next(f"q{n}" for n in range(100) if shard_of_queue(f"q{n}", SHARDS) == shard) for shard in range(SHARDS))


class BulkHouse(WholeHouse):
    def __init__(self, written: Written) -> None:
        super().__init__(written.path, SHARDS)
        self.written = written
        for machine in self.shards.machines:
            machine.now = NOW - 60 * SECOND  # jobs are older than the request that is about them

    def fill(self, count: int, **fields: Any) -> list[str]:
        """So many jobs, over all shards, and mirrored."""
        made = []
        for number in range(count):
            machine = self.shards.machines[number % SHARDS]
            machine.now = NOW - 60 * SECOND + number
            made.append(self.enqueue(QUEUES[number % SHARDS], **fields))
        self.mirror()
        return made

    def mirror(self) -> None:
        for shard, machine in enumerate(self.shards.machines):
            self.written.put(*machine.jobs(), shard=shard)
            self.written.put_cursor(shard, index=100)

    def bulk(self, action: str, **fields: Any) -> Reply:
        return self.post("/jobs/bulk", {"action": action, **fields})

    def states(self) -> dict[str, State]:
        return {job.id: job.state for machine in self.shards.machines for job in machine.jobs()}

    def run(self, work: Awaitable[T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(20):
                return await work

        return self.runner.run(bounded())

    def work(self) -> str:
        """Claim an operation and do it to its end; its id."""

        async def claim_and_work() -> str:
            bulk = await self.bulks.running.claim()
            assert bulk is not None, "nothing to do"
            await self.bulks.running.work(bulk)
            return bulk.id

        return self.run(claim_and_work())

    def until(self, condition: Callable[[], bool]) -> None:
        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0.001)

        self.run(wait())


@pytest.fixture
def bulk_house(tmp_path: Path) -> Iterator[BulkHouse]:
    written = Written(FilePlace(tmp_path), SHARDS)
    with BulkHouse(written) as house:
        house.mirror()
        yield house
    written.close()
