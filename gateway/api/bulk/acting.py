"""Runs one slice of a bulk action on the shards that hold its jobs.

Each shard gets one operation with all its jobs of the slice. Moved jobs are followed. If a shard is unreachable or
overloaded, its jobs are sent again. A shard remembers the results of the slice, so a repeated operation changes nothing
twice. A gateway runs one slice at a time over all bulk actions, so that workers are served between two slices.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from corvo.endpoint import spread
from corvo.model.errors import RETRYABLE, Refusal, Refused
from corvo.model.limits import TEXT_CHARS_MAX
from corvo.model.sharding import find_shard_of_job
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from corvo.rules.bulk import BulkCounts, BulkFailure, Order
from gateway.shards.client import Shards
from gateway.shards.moved_jobs import settle

ASK_AGAIN_S = 0.5
# These describe the shard, not a job: the same jobs are sent again.
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
        """Counts the outcomes of all jobs. Calls `goes_on` before it retries an unreachable shard; if that returns
        False, the jobs of that shard count as refused."""
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
        parts = [[job_ids[number] for number in numbers] for numbers in groups.values()]
        calls = [
            self._shards.ask(shard, msgspec.structs.replace(slice_, job_ids=part))
            for shard, part in zip(groups, parts, strict=True)
        ]
        found: dict[str, Refused | None] = {}
        for part, outcome in zip(parts, await settle(self._shards, calls), strict=True):
            if isinstance(outcome, Refusal):  # from one shard; the others have answered
                if outcome.code == "LEASE_LOST":
                    raise outcome
                outcome = [outcome.to_refused()] * len(part)
            found.update(zip(part, outcome, strict=True))
        return found


def _is_undecided(outcome: Refused | None) -> bool:
    return outcome is not None and outcome.code in UNDECIDED


def _count(tally: BulkCounts, job_id: str, outcome: Refused | None) -> None:
    if outcome is None:
        tally.affected += 1
    else:
        tally.refuse(BulkFailure(job_id, outcome.code, outcome.message[:TEXT_CHARS_MAX]))
