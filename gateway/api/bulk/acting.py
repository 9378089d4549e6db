"""One slice of a bulk action, carried out by the shards that hold its jobs.

Each shard gets one operation with all its jobs of the slice. A job that has moved is followed; what a shard could not
decide, because it was away or had enough, is asked again: a shard remembers what it did in the slice, so that asking
twice does nothing twice. One slice is under way at a time, whoever wants how many: between two of them the shards and
this gateway belong to the workers.
"""

import asyncio
from collections.abc import Awaitable, Callable

from corvo.endpoint import spread
from corvo.model.errors import RETRYABLE, Refusal, Refused
from corvo.model.limits import TEXT_CHARS_MAX
from corvo.model.sharding import find_shard_of_job
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from corvo.rules.bulk import BulkCounts, BulkFailure, Order
from gateway.shards.client import Shards
from gateway.shards.moved_jobs import ask_all

ASK_AGAIN_S = 0.5
# Said by circumstances, not by a job: the same slice is asked again.
UNDECIDED = RETRYABLE | {"OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED"}


class Acting:
    def __init__(self, shards: Shards, ask_again_s: float = ASK_AGAIN_S) -> None:
        self._shards = shards
        self._ask_again_s = ask_again_s
        self._turn = asyncio.Lock()

    async def act(
        self,
        bulk_id: str,
        step: int,
        order: Order,
        job_ids: list[str],
        kept_ms: int,
        goes_on: Callable[[], Awaitable[bool]],
    ) -> BulkCounts:
        """What became of each job. `goes_on` is asked before a shard that cannot be had is asked again; when it says
        no, its jobs are counted as refused."""
        tally = BulkCounts()
        left = job_ids
        while left:
            async with self._turn:
                outcomes = await self._ask(ActOnJobs(bulk_id, step, order, left, kept_ms))
            undecided = {job_id: outcome for job_id, outcome in outcomes.items() if _is_undecided(outcome)}
            is_stuck = len(undecided) == len(left)
            if is_stuck and not await goes_on():
                undecided = {}
            for job_id, outcome in outcomes.items():
                if job_id not in undecided:
                    _count(tally, job_id, outcome)
            left = list(undecided)
            if left and is_stuck:
                await asyncio.sleep(self._ask_again_s)
        return tally

    async def _ask(self, slice_: ActOnJobs) -> dict[str, Refused | None]:
        job_ids = slice_.job_ids
        groups = spread(job_ids, lambda job_id: find_shard_of_job(job_id, len(self._shards)))
        parts = [(shard, [job_ids[number] for number in numbers]) for shard, numbers in groups.items()]
        answers = await asyncio.gather(*(self._ask_shard(shard, slice_, part) for shard, part in parts))
        return {
            job_id: outcome
            for (_, part), outcomes in zip(parts, answers, strict=True)
            for job_id, outcome in zip(part, outcomes, strict=True)
        }

    async def _ask_shard(self, shard: int, slice_: ActOnJobs, job_ids: list[str]) -> list[Refused | None]:
        """A shard that cannot be had must not lose what the others have said."""
        ask = ActOnJobs(slice_.bulk_id, slice_.step, slice_.order, job_ids, slice_.kept_ms)
        try:
            [outcomes] = await ask_all(self._shards, [(shard, ask)])
        except Refusal as refusal:
            if refusal.code == "LEASE_LOST":
                raise
            return [refusal.to_refused()] * len(job_ids)
        return list(outcomes)


def _is_undecided(outcome: Refused | None) -> bool:
    return outcome is not None and outcome.code in UNDECIDED


def _count(tally: BulkCounts, job_id: str, outcome: Refused | None) -> None:
    if outcome is None:
        tally.affected += 1
    else:
        tally.refuse(BulkFailure(job_id, outcome.code, outcome.message[:TEXT_CHARS_MAX]))
