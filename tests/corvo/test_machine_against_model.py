"""The machine and the naive model live the same lives, whatever is asked, in whatever order, across crashes."""

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.endpoint import Operation
from corvo.model.errors import Refused
from corvo.model.job import Priority
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.retry import Backoff
from corvo.ops.jobs.fail import Failure
from corvo.ops.jobs.fetch import Claimed
from corvo.ops.jobs.heartbeat import Pulse
from corvo.ops.upkeep import promote as promote_module
from corvo.ops.upkeep import reclaim as reclaim_module
from corvo.state import pending, tables
from tests.support.builders import (
    MS,
    NOW,
    SECOND,
    ack,
    cancel,
    enqueue,
    fail,
    fetch,
    heartbeat,
    job_id,
    new_job,
    promote,
    reclaim,
)
from tests.support.machine import Machine
from tests.support.model import Model
from tests.support.strategies import logs

UPKEEP_JOBS = 2
ERRORS_KEPT = 2


@pytest.fixture(autouse=True, scope="module")
def tiny_bounds() -> Iterator[None]:
    """Caches and slices so small that every path through them is walked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "WINDOW_JOBS", 2)
        patch.setattr(pending, "WINDOWS_KEPT", 2)
        patch.setattr(tables, "JOBS_CACHED", 3)
        patch.setattr(tables, "WORKERS_CACHED", 1)
        patch.setattr(tables, "ERRORS_KEPT_PER_JOB", ERRORS_KEPT)
        patch.setattr(promote_module, "UPKEEP_JOBS_PER_ENTRY", UPKEEP_JOBS)
        patch.setattr(reclaim_module, "UPKEEP_JOBS_PER_ENTRY", UPKEEP_JOBS)
        yield


def plain(operation: Operation, result: Any) -> Any:
    """A result of the machine in the model's words."""
    if isinstance(result, list):
        return [plain(operation, item) for item in result]
    match result:
        case Refused():
            return result.code
        case Claimed():
            return (result.job_id, result.attempt, result.lease_token)
        case Failure():
            return (STATE_NAMES[result.state], result.attempts_remaining, result.next_attempt_at)
        case Pulse():
            return result.name.lower()
        case State():
            return STATE_NAMES[result]
    return result


class Pair:
    def __init__(self) -> None:
        self.machine = Machine()
        self.model = Model(UPKEEP_JOBS, ERRORS_KEPT)
        self.tokens: dict[str, int] = {}

    def entry(self, operations: list[Operation], at: int) -> None:
        live_before = {job.id for job in self.machine.jobs() if job.state == State.ACTIVE}
        results = self.machine.apply(*operations, at=at)
        expected = self.model.entry(at, operations)
        for operation, result, wanted in zip(operations, results, expected, strict=True):
            assert plain(operation, result) == wanted, operation
            if isinstance(result, list) and result and isinstance(result[0], Claimed) and not operation.is_repeated:
                self._see_claims(result)
        if len(operations) == 1 and results and isinstance(results[0], list):
            claimed = {item.job_id for item in results[0] if isinstance(item, Claimed)}
            assert getattr(operations[0], "is_repeated", False) or not claimed & live_before, "claimed under a lease"
        self.compare()

    def _see_claims(self, claims: list[Claimed]) -> None:
        for claim in claims:
            assert claim.lease_token > self.tokens.get(claim.job_id, 0), "a token was given out twice"
            self.tokens[claim.job_id] = claim.lease_token

    def compare(self) -> None:
        self.machine.check()
        assert self.machine.tables.now == self.model.now
        jobs = self.machine.jobs()
        assert sorted(job.id for job in jobs) == sorted(self.model.jobs)
        for job in jobs:
            twin = self.model.jobs[job.id]
            assert STATE_NAMES[job.state] == twin.state
            assert (job.attempt, job.lease_token, job.created_at) == (twin.attempt, twin.token, twin.created)
            assert (job.result, job.progress, job.checkpoint) == (twin.result, twin.progress, twin.checkpoint)
            if job.state == State.ACTIVE:
                assert (job.lease_expires_at, job.worker_id) == (twin.lease_end, twin.worker)
            if job.state in (State.SCHEDULED, State.RETRYING):
                assert job.due_at == twin.due
            assert [(error.claim, error.error) for error in self.machine.tables.errors(job.id)] == twin.errors
        for queue in self.machine.queues():
            assert queue.completed == self.model.completed.get(queue.name, 0)
            assert queue.failed == self.model.failed.get(queue.name, 0)
            waiting = [job for job in jobs if job.queue == queue.name and job.state == State.PENDING]
            waiting.sort(key=lambda job: (job.priority, job.position))
            assert [job.id for job in waiting] == [job.id for job in self.model.waiting(queue.name)]


def pair_after(log: list, crashes: list[int]) -> Pair:
    pair, at = Pair(), NOW
    for number, (step_ns, operations) in enumerate(log):
        at += step_ns
        pair.entry(operations, at)
        crash = crashes[number % len(crashes)]
        if crash >= 1:
            pair.machine.flush()
        if crash == 2:
            pair.machine.restart()
            pair.compare()
    return pair


@given(logs, st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_every_result_and_every_job_is_what_the_naive_model_says(log: list, crashes: list[int]) -> None:
    pair_after(log, crashes)


REQUESTS: dict[int, Any] = {}  # by the number of the job: a repeated enqueue is the same request


def wander(rng: random.Random, pair: Pair) -> Operation:
    """The next operation of a long life: mostly sensible, sometimes stale, repeated or absurd."""
    known = list(pair.model.jobs.values())
    active = [job for job in known if job.state == "active"]
    ended = [job for job in known if job.ended_by]
    if ended and rng.random() < 0.1:
        return _say_again(rng, rng.choice(ended))
    kinds = ("enqueue", "fetch", "ack", "fail", "beat", "cancel", "promote", "reclaim")
    kind = rng.choices(kinds, (12, 7, 4, 5, 3, 2, 4, 3))[0]
    if not known or kind == "enqueue":
        return _enqueue(rng, pair)
    job = rng.choice(active if active and rng.random() < 0.7 else known)
    token = max(0, rng.choice((job.token, job.token, job.token, 0, job.token - 1, job.token + 1)))
    match kind:
        case "fetch":
            is_repeated = bool(active) and rng.random() < 0.15
            return fetch(
                *rng.sample(("a", "b", "c", "never"), rng.randint(1, 4)),
                claim=rng.choice(active).claim if is_repeated else rng.getrandbits(62),
                count=rng.randint(1, 5),
                lease_ms=rng.choice((1_000, 1_001, 2_500)),
                is_repeated=is_repeated,
            )
        case "ack":
            return ack(job.id, ask=rng.getrandbits(62), token=token, result=b"%d" % rng.randint(0, 9))
        case "fail":
            return fail(job.id, ask=rng.getrandbits(62), token=token, error="boom")
        case "beat":
            return heartbeat(job.id, token=token, progress=b'{"p":%d}' % rng.randint(0, 9))
        case "cancel":
            return cancel(job.id, ask=rng.getrandbits(62))
        case "promote":
            return promote()
    return reclaim()


def _say_again(rng: random.Random, job: Any) -> Operation:
    """The request that ended the job's newest claim, once more."""
    token = rng.choice((0, job.token))
    match job.state:
        case "cancelled":
            return cancel(job.id, ask=job.ended_by)
        case "completed":
            return ack(job.id, ask=job.ended_by, token=token)
    return fail(job.id, ask=job.ended_by, token=token)


def _enqueue(rng: random.Random, pair: Pair) -> Operation:
    number = rng.choice((len(pair.model.jobs) + 1,) * 9 + (rng.randint(1, len(pair.model.jobs) + 1),))
    if number not in REQUESTS:
        REQUESTS[number] = new_job(
            number,
            queue=rng.choice(("a", "a", "b", "c")),
            priority=rng.choice(tuple(Priority)),
            max_retries=rng.randint(0, 4),
            backoff=rng.choice(tuple(Backoff)),
            base_delay_ms=rng.choice((0, 100, 900)),
            max_delay_ms=rng.choice((0, 1_000, 5_000)),
            scheduled_at=rng.choice((0, 0, 0, pair.model.now + rng.randint(-SECOND, 3 * SECOND))),
        )
    return enqueue(REQUESTS[number])


@pytest.mark.parametrize("seed", range(int(os.environ.get("SEEDS", "8"))))
def test_a_long_life_keeps_machine_and_model_together(seed: int) -> None:
    rng, pair, at = random.Random(seed), Pair(), NOW
    reached: set[str] = set()
    deepest = 0
    REQUESTS.clear()

    for _ in range(300):
        operations = [wander(rng, pair) for _ in range(rng.choice((1, 1, 1, 2)))]
        at += rng.choice((0, 1, 10 * MS, 100 * MS, 400 * MS, SECOND, -SECOND))
        pair.entry(operations, at)
        if rng.random() < 0.3:
            pair.machine.flush()
        if rng.random() < 0.05:
            pair.machine.restart()
            pair.compare()
        reached |= {job.state for job in pair.model.jobs.values()}
        deepest = max(deepest, len(pair.model.waiting("a")))

    assert reached == set(STATE_NAMES) - {"held"}, "the walk must reach what it claims to test"
    assert deepest > pending.WINDOW_JOBS


def test_the_comparison_notices_a_model_that_disagrees() -> None:
    pair = Pair()
    pair.entry([enqueue(1)], NOW)

    pair.model.jobs[job_id(1)].attempt = 1

    with pytest.raises(AssertionError):
        pair.compare()
