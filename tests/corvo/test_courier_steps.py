"""Every step of the courier's way, and everything that can go wrong at it.

An exchange is a story over three shards in which errands are given. Its steps are *give* (an operation at a shard),
*deliver* (at the target) and *confirm* (at the giver). Each is told once in peace; then again for every step and every
trouble: a shard dies before it or after it, with or without its state on disk; a message arrives twice or not at all.
The end must be the same, on every shard, to the byte.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.endpoint import Operation
from corvo.model.job_extras import Chain, ChainStep, IfLost, JobExtras
from corvo.model.lifecycle import State
from corvo.model.limits import DELIVERY_BYTES_MAX
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.move import Move
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.batches import BatchSpec
from corvo.rules.errands.register import ERRANDS, decode_errand
from corvo.state.outbox import Outbox
from tests.support.builders import ack, enqueue, fail, fetch, job_id, new_job
from tests.support.machine import Told, told
from tests.support.shards import Shards, queue_on

COUNT = 3
HOME, NEAR, FAR = (queue_on(shard, COUNT) for shard in range(COUNT))
BATCH = "s00_batch_" + "0" * 26
ERRANDS_AT_ONCE = 2  # so that an outbox needs more than one delivery

Give = tuple[int, Operation]  # shard, what is asked of it


class Exchange(NamedTuple):
    prepare: list[Give]
    gives: list[Give]  # each is followed by all that the courier has to do
    holds: Callable[[Shards], bool]  # what is true at the end


def _job_at(shards: Shards, shard: int, job: str, queue: str, state: State) -> bool:
    found = shards[shard].tables.find_job(job)
    return found is not None and (found.queue, found.state) == (queue, state)


def _pending(shards: Shards, queue: str) -> int:
    found = shards.of_queue(queue).tables.find_queue(queue)
    return 0 if found is None else found.counts[State.PENDING]


_CHAIN = Chain("chain", 0, (ChainStep(HOME), ChainStep(NEAR), ChainStep(FAR)))
_MEMBERS = [new_job(job_id(n, shard), queue) for n, shard, queue in ((1, 0, HOME), (2, 1, NEAR), (3, 2, FAR))]
_MEMBERS += [new_job(job_id(n, 1), NEAR) for n in (4, 5)]
_CALLBACKS = BatchSpec(on_complete=ChainStep("done" + FAR), on_failure=ChainStep(NEAR + "-ill"))

EXCHANGES: dict[str, Exchange] = {
    "a chain goes on": Exchange(
        prepare=[(0, enqueue(new_job(1, HOME, extras=JobExtras(chain=_CHAIN)))), (0, fetch(HOME))],
        gives=[(0, ack(1, result=b'{"n": 1}'))],
        holds=lambda shards: _pending(shards, NEAR) == 1,
    ),
    "a batch is made": Exchange(
        prepare=[],
        gives=[(0, AddToBatch(1, BATCH, _CALLBACKS, True, _MEMBERS))],
        holds=lambda shards: (_pending(shards, HOME), _pending(shards, NEAR), _pending(shards, FAR)) == (1, 3, 1),
    ),
    "a batch ends": Exchange(
        prepare=[
            (0, AddToBatch(1, BATCH, _CALLBACKS, True, [*_MEMBERS[:2], *_MEMBERS[3:]])),
            (0, fetch(HOME)),
            (1, fetch(NEAR, count=3)),
        ],
        gives=[
            (1, ack(*(job_id(n, 1) for n in (2, 4)))),
            (1, fail(job_id(5, 1), error="boom", is_final=True)),
            (0, ack(1)),
        ],
        holds=lambda shards: (_pending(shards, "done" + FAR), _pending(shards, NEAR + "-ill")) == (1, 1),
    ),
    "a job waits for another": Exchange(
        prepare=[(0, enqueue(new_job(1, HOME))), (0, fetch(HOME))],
        gives=[
            (1, enqueue(new_job(job_id(2, 1), NEAR, extras=JobExtras(waits_for=(job_id(1),))))),
            (0, ack(1)),
        ],
        holds=lambda shards: _job_at(shards, 1, job_id(2, 1), NEAR, State.PENDING),
    ),
    "jobs lose what they waited for, one after the other": Exchange(
        prepare=[(0, enqueue(new_job(1, HOME, max_retries=1))), (0, fetch(HOME))],
        gives=[
            (1, enqueue(new_job(job_id(2, 1), NEAR, extras=JobExtras(waits_for=(job_id(1),))))),
            (
                2,
                enqueue(new_job(job_id(3, 2), FAR, extras=JobExtras(waits_for=(job_id(2, 1),), if_lost=IfLost.CANCEL))),
            ),
            (0, fail(1, error="boom")),
        ],
        holds=lambda shards: (
            _job_at(shards, 1, job_id(2, 1), NEAR, State.DEAD)
            and _job_at(shards, 2, job_id(3, 2), FAR, State.CANCELLED)
        ),
    ),
    "a job moves with all that belongs to it": Exchange(
        prepare=[
            (
                0,
                enqueue(
                    new_job(1, HOME, extras=JobExtras(unique_key="k", idempotency_key="i", expire_after_ms=60_000))
                ),
            ),
            (1, enqueue(new_job(job_id(2, 1), NEAR, extras=JobExtras(waits_for=(job_id(1),))))),
            (0, fetch(HOME)),
            (0, fail(1, error="boom")),
        ],
        gives=[(0, Move(7, job_id(1), FAR))],
        holds=lambda shards: _job_at(shards, 2, job_id(1), FAR, State.RETRYING),
    ),
    "a job moves away, on, home and away again, and is deleted": Exchange(
        prepare=[(0, enqueue(new_job(1, HOME)))],
        gives=[
            (0, Move(7, job_id(1), NEAR)),
            (1, Move(8, job_id(1), FAR)),
            (2, Move(9, job_id(1), HOME)),
            (0, Move(10, job_id(1), NEAR)),
            (1, Delete(job_id(1))),
        ],
        holds=lambda shards: not any(machine.jobs() for machine in shards.machines),
    ),
    "a job is waited for where it no longer lives": Exchange(
        prepare=[(0, enqueue(new_job(1, HOME))), (0, Move(7, job_id(1), NEAR)), (1, fetch(NEAR))],
        gives=[
            (2, enqueue(new_job(job_id(2, 2), FAR, extras=JobExtras(waits_for=(job_id(1),))))),
            (1, ack(1)),
        ],
        holds=lambda shards: _job_at(shards, 2, job_id(2, 2), FAR, State.PENDING),
    ),
}


class Trouble(NamedTuple):
    """What goes wrong at a step."""

    what: str  # "crash before", "crash after", "twice" or "lost"
    whom: str = ""  # of a crash: "source", "target" or "all"
    is_flushed: bool = False

    def __str__(self) -> str:
        return " ".join(filter(None, (self.what, self.whom, "flushed" if self.is_flushed else "")))


CRASHES = [
    Trouble(f"crash {when}", whom, is_flushed)
    for when in ("before", "after")
    for whom in ("source", "target", "all")
    for is_flushed in (False, True)
]
TROUBLES = [*CRASHES, Trouble("twice"), Trouble("lost")]


class Teller:
    """Tells an exchange, with troubles at the steps that have one."""

    def __init__(self, exchange: Exchange, troubles: dict[int, Trouble] | None = None) -> None:
        self.shards = Shards(COUNT)
        self.steps: list[str] = []
        self.kinds: set[type] = set()  # of errands that were under way
        self._troubles = dict(troubles or {})
        for shard, operation in exchange.prepare:
            self.shards.one(shard, operation)
        for machine in self.shards.machines:
            machine.flush()
        for shard, operation in exchange.gives:
            self._step("give", shard, shard, operation)
            self._carry()

    def _carry(self) -> None:
        for _ in range(100):
            ways = [(source, target) for source in range(COUNT) for target in self._errands(source).targets()]
            if not ways:
                return
            for source, target in ways:
                first, raws = self._errands(source).waiting(target, ERRANDS_AT_ONCE, DELIVERY_BYTES_MAX)
                self.kinds |= {type(decode_errand(raw)) for raw in raws}
                done = self._step("deliver", source, target, Deliver(source, first, raws))
                if done is not None:
                    self._step("confirm", source, target, Confirm(target, done))
        raise AssertionError("errands never end")

    def _errands(self, shard: int) -> Outbox:
        return self.shards[shard].tables.errands

    def _step(self, name: str, source: int, target: int, operation: Operation) -> int | None:
        """One step, and its trouble; None where it got lost on its way."""
        trouble = self._troubles.pop(len(self.steps), Trouble(""))
        self.steps.append(f"{name} {source}-{target} {type(operation).__name__}")
        machine = self.shards[target if name == "deliver" else source]
        self._crash_if("crash before", trouble, source, target)
        if trouble.what == "lost" and name != "give":  # what nobody asked for was not lost
            return None
        result: int | None = machine.one(operation, at=self.shards.now)
        if trouble.what == "twice":
            machine.one(operation, at=self.shards.now)
        self._crash_if("crash after", trouble, source, target)
        return result

    def _crash_if(self, when: str, trouble: Trouble, source: int, target: int) -> None:
        if trouble.what != when:
            return
        for shard in {"source": [source], "target": [target], "all": range(COUNT)}[trouble.whom]:
            if trouble.is_flushed:
                self.shards[shard].flush()
            self.shards[shard].restart()

    def end(self) -> list[Told]:
        self.shards.check()
        return [told(machine.records()) for machine in self.shards.machines]


every_exchange = pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES)


@every_exchange
def test_in_peace_the_story_ends_as_it_should(exchange: Exchange) -> None:
    teller = Teller(exchange)

    assert exchange.holds(teller.shards)
    assert any(step.startswith("deliver") for step in teller.steps)
    assert all(not machine.tables.errands.targets() for machine in teller.shards.machines)


@pytest.mark.parametrize("trouble", TROUBLES, ids=str)
@every_exchange
def test_a_trouble_at_any_step_changes_nothing_of_the_end(exchange: Exchange, trouble: Trouble) -> None:
    calm = Teller(exchange)
    end = calm.end()

    for number, step in enumerate(calm.steps):
        assert Teller(exchange, {number: trouble}).end() == end, f"{trouble} at step {number}: {step}"


@every_exchange
@given(st.dictionaries(st.integers(0, 30), st.sampled_from(TROUBLES), max_size=8))
def test_many_troubles_in_one_story_change_nothing_of_the_end(exchange: Exchange, troubles: dict[int, Trouble]) -> None:
    teller = Teller(exchange, troubles)

    assert teller.end() == Teller(exchange).end(), teller.steps


def test_every_kind_of_errand_has_its_story() -> None:
    seen = set().union(*(Teller(exchange).kinds for exchange in EXCHANGES.values()))

    assert seen == set(ERRANDS), "tell a story of it in EXCHANGES"
