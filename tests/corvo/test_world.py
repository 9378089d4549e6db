"""Three shards and the plain world of `tests/support/world.py` live the same lives: whatever is asked of them, in
whatever order, while letters between them are late, lost and repeated, and machines fall between any two steps.

After every step all that can be seen is equal: jobs, orders, counters, keys, leases, batches, chains, letters, events.
`HYPOTHESIS_PROFILE=search` looks for new lives, `WALKS=500` takes longer walks.
"""

import copy
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from corvo.endpoint import Operation
from corvo.model.errors import Refused
from corvo.model.events import EVENT_NAMES
from corvo.model.job import PRIORITY_NAMES, Job, Priority
from corvo.model.job_extras import IF_LOST_NAMES, OUTCOME_NAMES, UNIQUE_UNTIL_NAMES, IfLost, JobExtras, UniqueUntil
from corvo.model.job_extras import Chain as StoredChain
from corvo.model.job_extras import ChainStep as StoredStep
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.retry import BACKOFF_NAMES, Backoff
from corvo.model.sharding import shard_of_queue
from corvo.model.timestamps import LATEST_NS
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.batches.seal_batch import SealBatch
from corvo.ops.jobs.ack import Ack, AckItem
from corvo.ops.jobs.approve import Approve
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.change_priority import ChangePriority
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail, FailItem, Failure
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.ops.jobs.heartbeat import Beat, Heartbeat, Pulse
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.move import Move
from corvo.ops.jobs.reject import Reject
from corvo.ops.jobs.requeue import Requeue
from corvo.ops.jobs.reschedule import Reschedule
from corvo.ops.jobs.retry import Retry
from corvo.ops.queues.clear_queue import ClearQueue
from corvo.ops.queues.delete_queue import DeleteQueue
from corvo.ops.queues.drain_queue import DrainQueue
from corvo.ops.queues.pause_queue import PauseQueue
from corvo.ops.queues.resume_queue import ResumeQueue
from corvo.ops.queues.set_concurrency import SetConcurrency
from corvo.ops.queues.set_retention import SetRetention
from corvo.ops.queues.set_throttle import SetThrottle
from corvo.ops.upkeep import ring
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.ops.upkeep.ring import Ring
from corvo.rules.batches import BatchSpec, decode_batch
from corvo.rules.job_creation import Existing, NewJob, derived_id
from corvo.state import keys, pending, tables
from tests.support.builders import MS, SECOND, job_id
from tests.support.machine import Machine, told
from tests.support.shards import Shards, queue_on
from tests.support.world import Chain, Life, New, Step, World

SHARDS = 3
DAY = 24 * 3600 * SECOND
QUEUES = [*(queue_on(shard, SHARDS, "a") for shard in range(SHARDS)), queue_on(0, SHARDS, "b")]  # few: jobs shall meet
SPANS = (*(MS, 200 * MS, 500 * MS, SECOND, 1_500 * MS, 3 * SECOND) * 3, 31 * SECOND, 3_600 * SECOND, 8 * DAY)
OUTBOX_LOOK = (500, 2**20)

Choose = Callable[[Sequence[Any]], Any]


@pytest.fixture(autouse=True, scope="module")
def tiny_bounds() -> Iterator[None]:
    """Caches and slices so small that every path through them is walked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "WINDOW_JOBS", 2)
        patch.setattr(pending, "WINDOWS_KEPT", 2)
        patch.setattr(tables, "JOBS_CACHED", 3)
        patch.setattr(ring, "ALARMS_AT_ONCE", 2)
        yield


# From the world's words to the machine's


def stored_step(step: Step | None) -> StoredStep | None:
    return None if step is None else StoredStep(step.queue, json.dumps(step.payload).encode())


def stored_chain(new: New) -> StoredChain | None:
    if new.chain is None:
        return None
    steps = tuple(StoredStep(step.queue, json.dumps(step.payload).encode()) for step in new.chain.steps)
    return StoredChain(new.chain.id, 0, steps, stored_step(new.chain.on_failure), stored_step(new.chain.on_exit))


def stored(new: New) -> NewJob:
    extras = JobExtras(
        unique_key=new.unique_key,
        unique_period_ms=new.unique_ms,
        unique_until=UniqueUntil(UNIQUE_UNTIL_NAMES.index(new.unique_until)),
        idempotency_key=new.idempotency_key,
        expire_after_ms=new.expire_ms,
        chain=stored_chain(new),
        waits_for=tuple(new.waits_for),
        if_lost=IfLost(IF_LOST_NAMES.index(new.if_lost)),
    )
    return NewJob(
        id=new.id,
        queue=new.queue,
        payload=json.dumps(new.payload).encode(),
        priority=Priority(PRIORITY_NAMES.index(new.priority)),
        max_retries=new.max_retries,
        backoff=Backoff(BACKOFF_NAMES.index(new.backoff)),
        base_delay_ms=new.base_ms,
        max_delay_ms=new.cap_ms,
        scheduled_at=new.scheduled_at,
        parent_id=new.parent,
        extras=None if extras == JobExtras() else extras,
    )


def plain(result: Any) -> Any:
    """And back."""
    if isinstance(result, list):
        return [plain(item) for item in result]
    match result:
        case Refused():
            return result.code
        case Existing():
            return ("existing", result.job_id)
        case Claimed():
            return (result.job_id, result.attempt, result.lease_token)
        case Failure():
            return (STATE_NAMES[result.state], result.attempts_remaining, result.next_attempt_at)
        case Pulse():
            return result.name.lower()
        case State():
            return STATE_NAMES[result]
    return result


class Twins:
    """The machines and the world, and everything that can happen to both. What happens is chosen by whoever drives."""

    def __init__(self) -> None:
        self.shards = Shards(SHARDS)
        self.world = World(SHARDS, lambda queue: shard_of_queue(queue, SHARDS), derived_id, self.shards.now)
        self.asks = 0
        self.born: list[New] = []
        self.said: list[tuple[int, Operation]] = []  # requests that may come again long afterwards
        self.last: tuple[int, Operation, Any] | None = None

    def number(self) -> int:
        self.asks += 1
        return self.asks

    def apply(self, shard: int, operation: Operation) -> Any:
        self.last = None
        return self.shards[shard].one(operation, at=self.shards.now)

    def ask(self, shard: int, operation: Operation, what: str, *details: Any) -> Any:
        result = self.apply(shard, operation)
        expected = self.world.ask(shard, what, *details)
        assert plain(result) == expected, (what, *details)
        self.last = (shard, operation, result)
        return expected

    def pick(self, choose: Choose, *states: str) -> tuple[Life, int] | None:
        """A job, mostly in one of these states, and the shard that is asked: where it is, or where it was born."""
        jobs = list(self.world.jobs.values())
        wanted = [job for job in jobs if job.state in states]
        jobs = wanted if wanted and choose((True, True, True, False)) else jobs
        if not jobs:
            return None
        job = choose(jobs)
        home = int(job.id[1:3])
        return job, home if job.shard is None or choose((False, False, False, True)) else job.shard

    def token(self, choose: Choose, job: Life) -> int:
        return choose((job.token, job.token, job.token, 0, job.token + 1))

    # Producers

    def new(self, choose: Choose) -> New:
        """A job with nothing special, or with one or two things that are."""
        queue = choose(QUEUES)
        number = len(self.born) + 1
        new = New(job_id(number, shard_of_queue(queue, SHARDS)), queue, {"n": number}, base_ms=1_000, cap_ms=3_000)
        new.max_retries = choose((3, 1, 2, 0))
        for _ in range(choose((0, 1, 2, 3))):
            self.adorn(new, choose)
        self.born.append(new)
        return new

    def adorn(self, new: New, choose: Choose) -> None:
        match choose(("priority", "unique", "key", "expiry", "date", "wait", "wait", "chain", "chain", "backoff")):
            case "priority":
                new.priority = choose(("high", "critical"))
            case "unique":
                new.unique_key, new.unique_until = choose("kl"), choose(("done", "period", "start"))
                new.unique_ms = choose((0, 2_000))
            case "key":
                new.idempotency_key = choose("mn")
            case "expiry":
                new.expire_ms = choose((1_000, 4_000))
            case "date":
                new.scheduled_at = self.shards.now + choose((-SECOND, SECOND, 10 * SECOND))
            case "wait" if self.world.jobs:
                others = list(self.world.jobs)
                new.waits_for = list(dict.fromkeys((choose(others), choose(others))))
                new.if_lost = choose(("fail", "cancel", "run"))
                new.scheduled_at = choose((new.scheduled_at, self.shards.now + 2 * SECOND))
            case "chain":
                new.chain = self.chain(new, choose)
            case "backoff":
                new.backoff = choose(("none", "fixed", "linear"))

    def chain(self, new: New, choose: Choose) -> Chain:
        steps = [Step(new.queue), *(self.step(choose) for _ in range(choose((1, 2, 0))))]
        on_failure, on_exit = choose((None, self.step(choose))), choose((None, self.step(choose)))
        return Chain(f"chn_{new.id[8:]}", steps, on_failure, on_exit)

    def step(self, choose: Choose) -> Step:
        return Step(choose(QUEUES), choose(({}, {"own": 1}, [1], {"previous_job_id": "mine", "batch": 0})))

    def enqueue(self, choose: Choose) -> None:
        new = self.new(choose)
        shard = shard_of_queue(new.queue, SHARDS)
        operation = Enqueue([stored(new)])
        self.ask(shard, operation, "enqueue", new)

    def enqueue_again(self, choose: Choose) -> None:
        """A request that was repeated long after its first answer was lost."""
        alone = [new for new in self.born if not new.batch]
        if alone:
            new = choose(alone)
            if (
                new.id not in self.world.jobs
            ):  # it begins a new life, in which old reports could be mistaken for its own
                self.said = [said for said in self.said if all(item.job_id != new.id for item in said[1].items)]
            self.ask(shard_of_queue(new.queue, SHARDS), Enqueue([stored(new)]), "enqueue", new)

    # Workers

    def fetch(self, choose: Choose) -> None:
        shard = choose(range(SHARDS))
        queues = [queue for queue in QUEUES if shard_of_queue(queue, SHARDS) == shard]
        queues = choose((queues, queues[::-1], queues[:1]))
        claim, count, lease_ms = self.number(), choose((1, 3, 9)), choose((1_000, 9_000, 30_000))
        is_two_phase = choose((False, False, True))
        operation = Fetch(queues, "w1", "host", claim, count, lease_ms, is_two_phase=is_two_phase)
        self.ask(shard, operation, "fetch", queues, "w1", claim, count, lease_ms, is_two_phase)

    def ack(self, choose: Choose) -> None:
        picked = self.pick(choose, "active")
        if picked is None:
            return
        items = []
        for job in [picked[0], *self.others(choose, *picked)]:
            items.append((job.id, self.token(choose, job), choose((None, 7, {"a": [1]})), choose((False, False, True))))
        operation = Ack(self.number(), [_ack_item(*item) for item in items])
        self.ask(picked[1], operation, "ack", *items)
        self.remember(picked[1], operation)

    def others(self, choose: Choose, job: Life, shard: int) -> list[Life]:
        """Sometimes more of the same shard, for a batch."""
        more = [other for other in self.world.on(shard) if other.state == "active" and other is not job]
        return more[:3] if choose((False, False, True)) else []

    def fail(self, choose: Choose) -> None:
        picked = self.pick(choose, "active")
        if picked is None:
            return
        job, shard = picked
        token = self.token(choose, job)
        how, ms = choose((("backoff", 0), ("backoff", 0), ("final", 0), ("after", 500), ("snooze", 1_500)))
        item = FailItem(
            job.id, token, "boom", "", how == "final", ms if how == "after" else None, ms if how == "snooze" else None
        )
        operation = Fail(self.number(), [item])
        result = self.apply(shard, operation)[0]
        assert plain(result) == self.world.ask(shard, "fail", job.id, token, "boom", how, ms), how
        self.last = (shard, operation, [result])
        self.remember(shard, operation)

    def remember(self, shard: int, operation: Ack | Fail) -> None:
        """Only requests under a lease that was given out: without a token they speak for whoever has the job."""
        jobs = self.world.jobs
        if all(item.job_id in jobs and 0 < item.lease_token <= jobs[item.job_id].token for item in operation.items):
            self.said.append((shard, operation))

    def beat(self, choose: Choose) -> None:
        picked = self.pick(choose, "active")
        if picked is not None:
            job, shard = picked
            token, progress = self.token(choose, job), choose((None, {"percent": 10}, {"percent": 20}))
            beat = Beat(job.id, token, b"" if progress is None else json.dumps(progress).encode())
            result = self.apply(shard, Heartbeat([beat]))[0]
            assert plain(result) == self.world.ask(shard, "beat", job.id, token, progress)

    # People

    def order(
        self, choose: Choose, states: Sequence[str], make: Callable[[str], Operation], what: str, *rest: Any
    ) -> None:
        picked = self.pick(choose, *states)
        if picked is not None:
            job, shard = picked
            self.ask(shard, make(job.id), what, job.id, *rest)

    def cancel(self, choose: Choose) -> None:
        grace_ms = choose((0, 2_000, 500))
        make = lambda job: Cancel(self.number(), job, grace_ms)  # noqa: E731
        self.order(choose, ("active", "pending", "scheduled"), make, "cancel", grace_ms)

    def hold(self, choose: Choose) -> None:
        self.order(choose, ("pending", "active", "scheduled"), lambda job: Hold(self.number(), job), "hold")

    def approve(self, choose: Choose) -> None:
        self.order(choose, ("held",), lambda job: Approve(self.number(), job), "approve")

    def reject(self, choose: Choose) -> None:
        self.order(choose, ("held",), lambda job: Reject(self.number(), job), "reject")

    def retry(self, choose: Choose) -> None:
        states = ("dead", "cancelled", "completed", "scheduled")
        self.order(choose, states, lambda job: Retry(self.number(), job), "retry")

    def requeue(self, choose: Choose) -> None:
        self.order(choose, ("dead",), lambda job: Requeue(self.number(), job), "requeue")

    def delete(self, choose: Choose) -> None:
        self.order(choose, STATE_NAMES, Delete, "delete")

    def prioritise(self, choose: Choose) -> None:
        priority = choose(PRIORITY_NAMES)
        make = lambda job: ChangePriority(job, Priority(PRIORITY_NAMES.index(priority)), self.number())  # noqa: E731
        self.order(choose, ("pending", "scheduled", "held"), make, "priority", priority)

    def reschedule(self, choose: Choose) -> None:
        due = self.world.now + choose((2, 0, -1)) * SECOND
        make = lambda job: Reschedule(self.number(), job, due)  # noqa: E731
        self.order(choose, ("pending", "scheduled", "retrying"), make, "reschedule", due)

    def move(self, choose: Choose) -> None:
        queue = choose(QUEUES)
        states = ("pending", "scheduled", "retrying", "held", "dead")
        self.order(choose, states, lambda job: Move(self.number(), job, queue), "move", queue)

    # Queues

    def control(self, choose: Choose) -> None:
        queue = choose(QUEUES)
        shard = shard_of_queue(queue, SHARDS)
        match choose(
            ("pause", "resume", "resume", "resume", "drain", "concurrency", "throttle", "throttle", "retention")
        ):
            case "pause":
                self.ask(shard, PauseQueue(queue), "pause", queue)
            case "resume":
                self.ask(shard, ResumeQueue(queue), "resume", queue)
            case "drain":
                self.ask(shard, DrainQueue(queue), "drain", queue)
            case "concurrency":
                limit = choose((0, 1, 2))
                self.ask(shard, SetConcurrency(queue, limit), "concurrency", queue, limit)
            case "throttle":
                rate = choose((0, 1, 3))
                window_ms = 2_000 if rate else 0
                self.ask(shard, SetThrottle(queue, rate, window_ms), "throttle", queue, rate, window_ms)
            case "retention":
                spans = choose(((1_000, 3_000, 2_000), (-1, 0, 5_000), (-1, -1, -1)))
                self.ask(shard, SetRetention(queue, spans), "retention", queue, spans)

    def clear(self, choose: Choose) -> None:
        queue = choose(QUEUES)
        shard = shard_of_queue(queue, SHARDS)
        operation = ClearQueue(self.number(), queue)
        result = self.apply(shard, operation)
        assert (plain(result) if isinstance(result, Refused) else result.removed) == self.world.ask(
            shard, "clear", queue
        )
        self.last = (shard, operation, result)

    def delete_queue(self, choose: Choose) -> None:
        queue, is_forced = choose(QUEUES), choose((False, True))
        shard = shard_of_queue(queue, SHARDS)
        result = self.apply(shard, DeleteQueue(queue, is_forced))
        expected = self.world.ask(shard, "delete_queue", queue, is_forced)
        assert (result.code if isinstance(result, Refused) else None) == expected

    # Batches

    def open_batch(self, choose: Choose) -> None:
        shard = choose(range(SHARDS))
        batch = f"s{shard:02d}_batch_{self.number():026d}"
        names = ("on_complete", "on_success", "on_failure")
        steps = {name: self.step(choose) for name in names if choose((True, False))}
        jobs = [self.new(choose) for _ in range(choose((0, 1, 2)))]
        seal = choose((False, True))
        spec = BatchSpec(*(stored_step(steps.get(name)) for name in names))
        operation = AddToBatch(self.number(), batch, spec, seal, [stored(new) for new in jobs])
        self.batch(shard, operation, "open", batch, steps, seal, *jobs)

    def add_to_batch(self, choose: Choose) -> None:
        if self.world.batches:
            batch = choose(list(self.world.batches))
            shard = self.world.batches[batch].shard
            jobs = [self.new(choose) for _ in range(choose((1, 2)))]
            seal = choose((False, True))
            operation = AddToBatch(self.number(), batch, None, seal, [stored(new) for new in jobs])
            self.batch(shard, operation, "add", batch, seal, *jobs)

    def batch(self, shard: int, operation: AddToBatch, what: str, *details: Any) -> None:
        for new in details[-len(operation.jobs) :] if operation.jobs else ():
            new.batch = operation.batch_id
        result = self.apply(shard, operation)
        expected = self.world.ask(shard, what, *details)
        assert (result.code if isinstance(result, Refused) else None) == expected
        self.last = (shard, operation, result)

    def seal_batch(self, choose: Choose) -> None:
        if self.world.batches:
            batch = choose(list(self.world.batches))
            self.ask(self.world.batches[batch].shard, SealBatch(batch), "seal", batch)

    # Time, letters, accidents

    def pass_time(self, choose: Choose) -> None:
        self.shards.now += choose(SPANS)
        self.world.now = self.shards.now
        self.last = None
        for shard in range(SHARDS):
            self.shards[shard].apply(Promote(), Ring(), Reclaim(), at=self.shards.now)
            self.world.pass_time(shard)

    def ways(self) -> list[tuple[int, int]]:
        return [(source, target) for source in range(SHARDS) for target in self.shards[source].tables.errands.targets()]

    def deliver(self, choose: Choose) -> None:
        """Some of what waits is brought over; the confirmation may be lost, and then the same is brought again."""
        ways = self.ways()
        if ways:
            source, target = choose(ways)
            errands = self.shards[source].tables.errands
            first, raws = errands.waiting(target, *OUTBOX_LOOK)
            count = choose(range(len(raws), 0, -1))
            done = self.apply(target, Deliver(source, first, raws[:count]))
            self.world.deliver(source, target, count - (self.world.done(source, target) - first + 1))
            assert done == self.world.done(source, target)
            if choose((True, False)):
                self.apply(source, Confirm(target, done))
                self.world.confirm(source, target)

    def deliver_all(self, choose: Choose) -> None:
        self.last = None
        for _ in range(100):
            for source, target in self.ways():
                waiting = len(self.world.letters.get((source, target), ()))
                self.shards.confirm(self.shards[source], target, self.shards.deliver(self.shards[source], target))
                self.world.deliver(source, target, waiting)
                self.world.confirm(source, target)
            if not self.ways():
                return
        raise AssertionError("letters never end")

    def flush(self, choose: Choose) -> None:
        self.shards[choose(range(SHARDS))].flush()

    def crash(self, choose: Choose) -> None:
        machine = self.shards[choose(range(SHARDS))]
        if choose((False, True)):
            machine.flush()
        machine.restart()

    def say_again(self, choose: Choose) -> None:
        """The newest request once more, because its answer was lost: nothing changes, and the answer is the same."""
        if self.last is None:
            return
        shard, operation, result = self.last
        if isinstance(operation, Fetch):
            again = self.apply(shard, msgspec.structs.replace(operation, is_repeated=True))
            if result:
                assert sorted(plain(again)) == sorted(plain(result))
            return
        again = self.apply(shard, operation)
        if isinstance(operation, AddToBatch):  # of a later letter, perhaps
            assert isinstance(again, Refused) == isinstance(result, Refused)
        elif not isinstance(operation, Delete | Move):  # one has nothing left to say, the other is answered elsewhere
            assert plain(again) == plain(result)

    def say_again_late(self, choose: Choose) -> None:
        """A report of a worker that comes again after all that has happened since: nothing changes."""
        if self.said:
            shard, operation = choose(self.said)
            self.apply(shard, operation)

    # The comparison

    def compare(self) -> None:
        for shard, machine in enumerate(self.shards.machines):
            machine.check()
            self.compare_jobs(shard, machine)
            self.compare_queues(shard, machine)
            self.compare_keys(shard, machine)
            self.compare_batches(shard, machine)
            self.compare_letters(shard, machine)
            self.compare_events(shard, machine)

    def compare_jobs(self, shard: int, machine: Machine) -> None:
        jobs = {job.id: job for job in machine.jobs()}
        assert sorted(jobs) == sorted(life.id for life in self.world.on(shard))
        for job in jobs.values():
            life = self.world.jobs[job.id]
            assert seen(job, machine) == expected(life), job.id

    def compare_queues(self, shard: int, machine: Machine) -> None:
        lines = {name: line for name, line in self.world.lines.items() if shard_of_queue(name, SHARDS) == shard}
        assert sorted(queue.name for queue in machine.queues()) == sorted(lines)
        for queue in machine.queues():
            line = lines[queue.name]
            assert (queue.enqueued, queue.completed, queue.failed) == (line.enqueued, line.completed, line.failed)
            lives = Counter(life.state for life in self.world.on(shard) if life.queue == queue.name)
            assert queue.counts == [lives[name] for name in STATE_NAMES]
            waiting = [job for job in machine.jobs() if (job.queue, job.state) == (queue.name, State.PENDING)]
            waiting.sort(key=lambda job: (job.priority, job.position))
            assert [job.id for job in waiting] == [life.id for life in self.world.pending(queue.name)]

    def compare_keys(self, shard: int, machine: Machine) -> None:
        now = self.shards.now
        found = {}
        for key, value in machine._scan(keys.UNIQUE):
            holder, until = msgspec.msgpack.decode(value)
            if until > now:
                found[_two(key)] = (holder, until)
        assert found == {
            key: lock
            for key, lock in self.world.locks.items()
            if lock[1] > now and shard_of_queue(key[0], SHARDS) == shard
        }
        held = {_two(key): value.decode() for key, value in machine._scan(keys.IDEMPOTENT)}
        assert held == {key: job for key, job in self.world.keys.items() if shard_of_queue(key[0], SHARDS) == shard}
        watched = {_two(key) for key, _ in machine._scan(keys.WATCHERS)}
        assert watched == {
            (life.id, dependent) for life in self.world.on(shard) for dependent in self.world.watchers.get(life.id, ())
        }
        notes = {key[2:].decode(): value[0] for key, value in machine._scan(keys.FORWARDED)}
        assert notes == {job: note[0] for (place, job), note in self.world.notes.items() if place == shard}

    def compare_batches(self, shard: int, machine: Machine) -> None:
        found = {}
        for _, value in machine._scan(keys.BATCHES):
            batch = decode_batch(value)
            ended = dict(zip(OUTCOME_NAMES, batch.ended, strict=True))
            found[batch.id] = (batch.total, batch.is_sealed, ended, batch.finished_at)
        assert found == {
            name: (bunch.total, bunch.sealed, {word: bunch.ended[word] for word in OUTCOME_NAMES}, bunch.finished)
            for name, bunch in self.world.batches.items()
            if bunch.shard == shard
        }

    def compare_letters(self, shard: int, machine: Machine) -> None:
        errands = machine.tables.errands
        for other in range(SHARDS):
            if other != shard:
                assert errands.given.get(other, 0) == self.world.sent[shard, other]
                assert errands.confirmed.get(other, 0) == self.world.confirmed[shard, other]
                assert errands.received.get(other, 0) == self.world.done(other, shard)

    def compare_events(self, shard: int, machine: Machine) -> None:
        events = told(dict(machine._scan(keys.EVENTS))).events
        found = Counter((EVENT_NAMES[event.kind], event.job_id, event.queue) for _, event in events)
        assert found == {each[1:]: count for each, count in self.world.events.items() if each[0] == shard}


def _two(key: bytes) -> tuple[str, str]:
    first, _, second = key[2:].partition(b"\0")
    return first.decode(), second.decode()


def _ack_item(job: str, token: int, result: Any, exits: bool) -> AckItem:
    return AckItem(job, token, b"" if result is None else json.dumps(result).encode(), b"", exits)


def seen(job: Job, machine: Machine) -> dict[str, Any]:
    extras = job.extras or JobExtras()
    state = STATE_NAMES[job.state]
    return {
        "queue": job.queue,
        "state": state,
        "priority": PRIORITY_NAMES[job.priority],
        "attempt": job.attempt,
        "token": job.lease_token,
        "created": job.created_at,
        "payload": json.loads(job.payload),
        "parent": job.parent_id,
        "result": json.loads(job.result) if job.result else None,
        "progress": json.loads(job.progress) if job.progress else None,
        "errors": [(error.error, error.created_at) for error in machine.tables.errors(job.id)],
        "due": job.due_at if state in ("scheduled", "retrying") else None,
        "lease": (job.lease_expires_at, job.worker_id, extras.cancel_at) if state == "active" else None,
        "waits for": extras.waits_for,
        "expires": extras.expire_at,
        "batch": extras.batch_id,
        "step": None if extras.chain is None else (extras.chain.id, extras.chain.step),
        "told": extras.is_told and (bool(extras.batch_id) or extras.chain is not None),
    }


def expected(life: Life) -> dict[str, Any]:
    new = life.new
    is_bound = bool(new.batch) or new.chain is not None
    return {
        "queue": life.queue,
        "state": life.state,
        "priority": life.priority,
        "attempt": life.attempt,
        "token": life.token,
        "created": life.created,
        "payload": new.payload,
        "parent": new.parent,
        "result": life.result,
        "progress": life.progress,
        "errors": life.errors,
        "due": (LATEST_NS if life.due is None else life.due) if life.state in ("scheduled", "retrying") else None,
        "lease": (life.lease_end, life.worker, life.cancel_at) if life.state == "active" else None,
        "waits for": tuple(life.waits_for),
        "expires": life.expire_at,
        "batch": new.batch,
        "step": None if new.chain is None else (new.chain.id, new.step),
        "told": life.told and is_bound,
    }


# What may happen, and how often in a long walk.
DEEDS: dict[Callable[[Twins, Choose], None], int] = {
    Twins.enqueue: 14,
    Twins.enqueue_again: 2,
    Twins.fetch: 12,
    Twins.ack: 10,
    Twins.fail: 7,
    Twins.beat: 4,
    Twins.cancel: 5,
    Twins.hold: 3,
    Twins.approve: 2,
    Twins.reject: 2,
    Twins.retry: 3,
    Twins.requeue: 1,
    Twins.delete: 2,
    Twins.prioritise: 2,
    Twins.move: 6,
    Twins.reschedule: 3,
    Twins.control: 4,
    Twins.clear: 1,
    Twins.delete_queue: 1,
    Twins.open_batch: 4,
    Twins.add_to_batch: 3,
    Twins.seal_batch: 2,
    Twins.pass_time: 8,
    Twins.deliver: 14,
    Twins.deliver_all: 3,
    Twins.flush: 2,
    Twins.crash: 4,
    Twins.say_again: 4,
    Twins.say_again_late: 2,
}


class Lives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.twins = Twins()

    @rule(data=st.data(), deed=st.sampled_from(list(DEEDS)))
    def live(self, data: st.DataObject, deed: Callable[[Twins, Choose], None]) -> None:
        deed(self.twins, lambda options: data.draw(st.sampled_from(list(options))))

    @invariant()
    def nothing_differs(self) -> None:
        self.twins.compare()


Lives.TestCase.settings = settings(stateful_step_count=40)
test_lives = Lives.TestCase


def walk(seed: int, reached: set[str]) -> None:
    rng = random.Random(seed)
    twins = Twins()
    for _ in range(250):
        deed = rng.choices(list(DEEDS), list(DEEDS.values()))[0]
        deed(twins, lambda options: rng.choice(list(options)))
        twins.compare()
    twins.deliver_all(rng.choice)
    twins.compare()
    reached |= {what for _, what, _, _ in twins.world.events}


def test_long_walks_reach_everything_and_nothing_ever_differs() -> None:
    reached: set[str] = set()
    for seed in range(int(os.environ.get("WALKS", "8"))):
        try:
            walk(seed, reached)
        except AssertionError as error:
            error.add_note(f"walk {seed}")
            raise

    elsewhere = {"continued", "schedule_fired"}
    assert reached == set(EVENT_NAMES) - elsewhere, "the walks must reach what they claim to test"


def test_the_comparison_notices_a_world_that_disagrees() -> None:
    twins = Twins()
    twins.ask(0, Enqueue([stored(new := New(job_id(1), QUEUES[0]))]), "enqueue", new)
    twins.compare()

    for change in (
        lambda world: world.jobs[job_id(1)].errors.append(("boom", 0)),
        lambda world: world.events.update([(0, "dead", job_id(1), QUEUES[0])]),
        lambda world: world.locks.update({(QUEUES[0], "k"): (job_id(1), 2**62)}),
        lambda world: world.sent.update([(0, 1)]),
        lambda world: setattr(world.lines[QUEUES[0]], "enqueued", 2),
    ):
        twins_before = copy.deepcopy(twins.world)
        change(twins.world)
        with pytest.raises(AssertionError):
            twins.compare()
        twins.world = twins_before
