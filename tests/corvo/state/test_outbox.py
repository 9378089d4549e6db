"""Errands between shards: whatever is delivered twice, lost or forgotten, each one has its effect once and in order."""

from functools import cache
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.job_extras import FAILURE_STEP, Chain, ChainStep, JobExtras
from corvo.model.limits import DELIVERY_BYTES_MAX
from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.job_creation import derived_id
from corvo.state import keys
from corvo.state.kv import MemoryKV, Overlay
from corvo.state.outbox import Outbox
from tests.support.builders import cancel, enqueue, job_id, new_job
from tests.support.shards import Shards, queue_on


def errands_of(kv: MemoryKV | None = None) -> tuple[Outbox, Overlay, MemoryKV]:
    kv = kv or MemoryKV()
    overlay = Overlay(kv)
    errands = Outbox(overlay, 0, 3)
    errands.recall(kv)
    return errands, overlay, kv


def recalled(overlay: Overlay, kv: MemoryKV) -> Outbox:
    overlay.seal()
    kv.write(overlay.changes)
    overlay.changes = {}
    return errands_of(kv)[0]


def words(*texts: str) -> list[ChainStep]:
    """Any struct will do: the outbox holds bytes."""
    return [ChainStep(text) for text in texts]


def test_numbers_run_from_one_for_each_shard() -> None:
    errands, _, _ = errands_of()
    for target, errand in zip((1, 2, 1), words("a", "b", "c"), strict=True):
        errands.send(target, errand)

    assert errands.given == {1: 2, 2: 1}
    assert sorted(errands.targets()) == [1, 2]
    assert errands.waiting(1, 10, 1_000)[0] == 1
    assert [msgspec.msgpack.decode(raw, type=ChainStep).queue for raw in errands.waiting(1, 10, 1_000)[1]] == ["a", "c"]


def test_what_is_for_this_shard_needs_no_outbox() -> None:
    errands, overlay, _ = errands_of()
    [errand] = words("a")

    errands.send(0, errand)

    assert list(errands.here) == [errand]
    assert overlay.seal() == {}
    assert errands.targets() == []


def test_a_delivery_is_cut_at_its_count_and_at_its_bytes_but_never_empty() -> None:
    errands, _, _ = errands_of()
    for errand in words("a", "b", "x" * 500, "c"):
        errands.send(1, errand)

    assert len(errands.waiting(1, 2, 10_000)[1]) == 2
    assert len(errands.waiting(1, 10, 100)[1]) == 2
    assert len(errands.waiting(1, 10, 0)[1]) == 1


def test_what_is_confirmed_is_gone_and_its_number_is_never_given_again() -> None:
    errands, overlay, kv = errands_of()
    for errand in words("a", "b"):
        errands.send(1, errand)

    assert errands.confirm(1, 2) == 2

    again = recalled(overlay, kv)
    assert again.targets() == []
    again.send(1, words("c")[0])
    assert (again.given, again.waiting(1, 10, 1_000)[0]) == ({1: 3}, 3)


def test_a_confirmation_that_comes_late_twice_or_from_nowhere_forgets_nothing_more() -> None:
    errands, _, _ = errands_of()
    for errand in words("a", "b", "c"):
        errands.send(1, errand)
    assert errands.confirm(1, 2) == 2

    assert errands.confirm(1, 1) == 0
    assert errands.confirm(1, 2) == 0
    assert errands.confirm(2, 9) == 0
    assert errands.confirm(1, 99) == 1

    assert errands.targets() == []
    errands.send(1, words("d")[0])
    assert errands.waiting(1, 10, 1_000)[0] == 4


def test_an_errand_is_under_way_until_it_is_confirmed() -> None:
    errands, _, _ = errands_of()
    errands.send(1, words("a")[0])

    assert errands.is_underway(1, 1)
    errands.confirm(1, 1)
    assert not errands.is_underway(1, 1)


def test_only_the_next_number_is_received() -> None:
    errands, overlay, kv = errands_of()

    assert not errands.receive(1, 2), "a hole"
    assert errands.receive(1, 1)
    assert not errands.receive(1, 1), "again"
    assert errands.receive(2, 1), "every shard has numbers of its own"

    again = recalled(overlay, kv)
    assert again.received == {1: 1, 2: 1}
    assert not again.receive(1, 1)
    assert again.receive(1, 2)


outbox_steps = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 2)),
    st.tuples(st.just("send"), st.integers(1, 2)),
    st.tuples(st.just("confirm"), st.tuples(st.integers(1, 2), st.integers(0, 8))),
    st.tuples(st.just("restart"), st.none()),
)


@given(st.lists(outbox_steps, max_size=40))
def test_the_outbox_is_what_two_lists_say(script: list[tuple[str, Any]]) -> None:
    errands, overlay, kv = errands_of()
    naive: dict[int, list[str]] = {1: [], 2: []}
    gone = {1: 0, 2: 0}

    for verb, what in script:
        if verb == "send":
            naive[what].append(f"errand {len(naive[what])}")
            errands.send(what, ChainStep(naive[what][-1]))
        elif verb == "confirm":
            target, upto = what
            errands.confirm(target, upto)
            gone[target] = max(gone[target], min(upto, len(naive[target])))
        else:
            overlay.seal()
            kv.write(overlay.changes)
            errands, overlay, kv = errands_of(kv)
        for target, all_of_it in naive.items():
            first, raws = errands.waiting(target, 100, 10**6)
            texts = [msgspec.msgpack.decode(raw, type=ChainStep).queue for raw in raws]
            assert texts == all_of_it[gone[target] :]
            assert first == gone[target] + 1
            assert (target in errands.targets()) == bool(texts)


# Three shards that give each other errands, and everything that can happen on the way


class Giving:
    """Each errand makes a job in a queue of its own pair of shards: the order of births is the order of effects, and
    a second effect could not hide, because the counts of the queue would show it.

    A job that begins a chain is made and cancelled in one entry; the errand makes the chain's `on_failure`.
    """

    def __init__(self) -> None:
        self.shards = Shards(3)
        self.expected: dict[tuple[int, int], list[str]] = {}
        self._births = 0
        self._carried: dict[tuple[int, int], Deliver] = {}  # the newest delivery of each pair

    def give(self, source: int, target: int) -> None:
        self._births += 1
        first, after = job_id(self._births, source), ChainStep(_queue(source, target))
        chain = Chain(f"chain-{self._births}", 0, (ChainStep("start"),), on_failure=after)
        self.shards[source].apply(
            enqueue(new_job(first, extras=JobExtras(chain=chain))), cancel(first), at=self.shards.now
        )
        made = derived_id(target, chain.id, FAILURE_STEP)
        self.expected.setdefault((source, target), []).append(made)

    def deliver(self, source: int, target: int) -> int:
        errands = self.shards[source].tables.errands
        first, raws = errands.waiting(target, 2, DELIVERY_BYTES_MAX)
        self._carried[source, target] = delivery = Deliver(source, first, raws)
        done: int = self.shards[target].one(delivery, at=self.shards.now)
        return done

    def repeat(self, source: int, target: int) -> None:
        """An old message arrives once more, whatever was confirmed meanwhile."""
        if (source, target) in self._carried:
            self.shards[target].one(self._carried[source, target], at=self.shards.now)

    def play(self, verb: str, one: int, other: int) -> None:
        shards = self.shards
        if verb == "flush":
            shards[one].flush()
        elif verb == "crash":
            shards[one].restart()
        elif verb == "give":
            self.give(one, other)
        elif one == other:
            return
        elif verb == "repeat":
            self.repeat(one, other)
        elif verb == "deliver":
            shards.confirm(shards[one], other, self.deliver(one, other))
        else:  # the confirmation gets lost
            self.deliver(one, other)

    def effects(self) -> dict[tuple[int, int], list[str]]:
        found = {}
        for source in range(3):
            for target in range(3):
                jobs = [job for job in self.shards[target].jobs() if job.queue == _queue(source, target)]
                if jobs:
                    found[source, target] = [job.id for job in sorted(jobs, key=lambda job: job.position)]
        return found


@cache
def _queue(source: int, target: int) -> str:
    return queue_on(target, 3, f"from-{source}")


pairs = st.tuples(st.integers(0, 2), st.integers(0, 2))
script_steps = st.one_of(
    st.tuples(st.sampled_from(("give", "give", "deliver", "lose", "repeat")), pairs),
    st.tuples(st.sampled_from(("flush", "crash")), pairs),
)


@given(st.lists(script_steps, max_size=30))
def test_every_errand_is_done_once_and_in_order_whatever_happens_on_the_way(
    script: list[tuple[str, tuple[int, int]]],
) -> None:
    giving = Giving()

    for verb, (one, other) in script:
        giving.play(verb, one, other)
        for pair, done in giving.effects().items():
            assert done == giving.expected[pair][: len(done)], "in order, none twice"
    giving.shards.carry()

    assert giving.effects() == giving.expected
    for machine in giving.shards.machines:
        before = machine.state()
        machine.restart()
        assert machine.state() == before, "a crash now would change nothing"
        assert machine.tables.errands.targets() == []
        assert not any(key.startswith(keys.OUTBOX) for key in machine.records())
        for queue in machine.queues():
            assert queue.enqueued == sum(queue.counts)
    giving.shards.check()
