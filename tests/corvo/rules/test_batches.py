"""Batches over three shards: every end is counted once, whatever road led to it, and the callbacks come once."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.events import EventKind
from corvo.model.job_extras import OUTCOME_NAMES, ChainStep, Outcome
from corvo.model.lifecycle import State
from corvo.model.limits import BATCH_ASKS_KEPT_MS, BATCH_QUEUES_KEPT, RETENTION_MS_DEFAULT
from corvo.model.reach import Reach
from corvo.ops.batches.seal_batch import SealBatch
from corvo.ops.jobs.retry import Retry
from corvo.rules.batches import OTHER_QUEUES, Batch, BatchSpec, decode_batch, encode, find_batch, is_within, note_queues
from corvo.state import keys
from corvo.state.event_log import decode_page
from tests.support.batches import (
    DONE,
    ON_EACH_SHARD,
    SHARDS,
    WAYS,
    a_batch,
    add,
    batch_id,
    callbacks,
    end,
    member,
    member_id,
    shard_of,
    the_batch,
)
from tests.support.builders import MS, NOW, SECOND, ack, fetch
from tests.support.shards import Shards


@pytest.mark.parametrize("way", WAYS)
def test_every_end_of_a_member_is_counted(way: str) -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD, expiring=ON_EACH_SHARD if way == "expire" else ())

    for number in ON_EACH_SHARD:
        end(shards, number, way)

    batch = the_batch(shards)
    assert batch.ended == [3 if outcome is WAYS[way] else 0 for outcome in Outcome]
    assert NOW <= batch.finished_at <= shards.now
    assert [job.queue for job in callbacks(shards)] == ["done", "well" if way == "complete" else "ill"]
    shards.check()


def test_the_members_know_their_batch_and_are_where_their_queues_are() -> None:
    shards = Shards(SHARDS)

    a_batch(shards, *ON_EACH_SHARD)

    for number in ON_EACH_SHARD:
        job = shards[shard_of(number)].job(member_id(number))
        assert job.extras is not None
        assert job.extras.batch_id == batch_id()
    assert the_batch(shards).total == 3


def test_one_member_that_is_not_completed_makes_it_a_failure() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD)

    for number, way in zip(ON_EACH_SHARD, ("complete", "cancel", "complete"), strict=True):
        assert callbacks(shards) == []
        end(shards, number, way)

    assert [job.queue for job in callbacks(shards)] == ["done", "ill"]


def test_a_callback_gets_its_own_payload_and_the_counts() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD)

    for number, way in zip(ON_EACH_SHARD, ("complete", "fail", "delete"), strict=True):
        end(shards, number, way)

    counts = {
        "batch_id": batch_id(),
        "total": 3,
        "succeeded": 1,
        "failed": 2,
        "completed": 1,
        "dead": 1,
        "cancelled": 0,
        "deleted": 1,
    }
    done, ill = (msgspec.json.decode(job.payload) for job in callbacks(shards))
    assert done == {"album": 42, "batch": {**counts, "callback": "on_complete"}}
    assert ill == {"batch": {**counts, "callback": "on_failure"}}


@pytest.mark.parametrize(
    ("payload", "kept"), [(b'{"n": 2.50}', b'"n":2.50'), (b"[1, 2]", b'"payload":[1, 2]'), (b"null", b'"payload":null')]
)
def test_the_payload_of_a_callback_is_kept_to_the_byte(payload: bytes, kept: bytes) -> None:
    shards = Shards(SHARDS)

    shards.one(0, add(create=BatchSpec(ChainStep("done", payload)), seal=True))

    [job] = callbacks(shards)
    assert kept in job.payload


def test_an_empty_batch_is_over_when_it_is_sealed_and_is_a_success() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, seal=False)
    assert the_batch(shards).finished_at == 0

    shards.one(0, SealBatch(batch_id()))

    assert the_batch(shards).finished_at == NOW
    assert [job.queue for job in callbacks(shards)] == ["done", "well"]


def test_an_open_batch_whose_members_have_ended_waits_for_its_seal() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD, seal=False)
    for number in ON_EACH_SHARD:
        end(shards, number, "complete")
    assert callbacks(shards) == []

    shards.one(0, SealBatch(batch_id()))

    assert [job.queue for job in callbacks(shards)] == ["done", "well"]


def test_a_batch_without_callbacks_only_counts() -> None:
    shards = Shards(SHARDS)
    shards.one(0, add(member(1), create=BatchSpec(), seal=True))

    end(shards, 1, "complete")

    assert the_batch(shards).finished_at == NOW
    assert callbacks(shards) == []


@pytest.mark.parametrize("number", ON_EACH_SHARD)
def test_a_member_that_runs_again_after_its_end_is_not_counted_again(number: int) -> None:
    shards = Shards(SHARDS)
    a_batch(shards, number, 77)
    end(shards, number, "fail")

    shards.one(shard_of(number), Retry(5, member_id(number)))
    shards.one(shard_of(number), fetch(f"m{number}", claim=6))
    shards.one(shard_of(number), ack(member_id(number), ask=7))

    assert shards[shard_of(number)].job(member_id(number)).state == State.COMPLETED
    assert the_batch(shards).ended == [0, 1, 0, 0]
    assert callbacks(shards) == []


def test_an_end_is_told_before_its_member_is_confirmed_and_only_once_when_it_is_carried_twice() -> None:
    shards = Shards(SHARDS)
    far = ON_EACH_SHARD[1]
    a_batch(shards, far)
    source = shards[shard_of(far)]
    source.apply(fetch(f"m{far}"), ack(member_id(far)), at=shards.now)

    shards.deliver(source, 0)
    shards.deliver(source, 0)
    shards.carry()

    assert the_batch(shards).ended == [1, 0, 0, 0]
    assert len(callbacks(shards)) == 2


def test_the_end_of_a_batch_is_told() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, seal=True)

    pages = [
        decode_page(value) for _, value in shards[0].tables.overlay.scan(keys.EVENTS, keys.prefix_end(keys.EVENTS))
    ]

    [told] = [event for page in pages for event in page.events if event.kind is EventKind.BATCH_COMPLETED]
    assert msgspec.json.decode(told.data) == {
        "batch_id": batch_id(),
        "total": 0,
        "succeeded": 0,
        "failed": 0,
        **dict.fromkeys(("completed", "dead", "cancelled", "deleted"), 0),
    }


def test_a_finished_batch_is_forgotten_after_a_while_and_an_open_one_is_not() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, seal=True)
    shards.one(0, add(create=DONE, batch=batch_id(2), ask=2))

    shards.pass_time(RETENTION_MS_DEFAULT * MS - SECOND)
    assert find_batch(shards[0].tables, batch_id()) is not None
    shards.pass_time(SECOND)

    assert find_batch(shards[0].tables, batch_id()) is None
    assert find_batch(shards[0].tables, batch_id(2)) is not None
    assert shards[0].changes.records[keys.batch(batch_id())] is None  # the mirror is told, too


def test_the_requests_that_added_to_a_batch_are_remembered_for_a_while() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, seal=False)
    shards.one(0, add(member(1), ask=7))
    asks = lambda: list(shards[0].tables.overlay.scan(keys.BATCH_ASKS, keys.prefix_end(keys.BATCH_ASKS)))  # noqa: E731
    assert [key for key, _ in asks()] == [keys.batch_ask(batch_id(), 7)]

    shards.pass_time(BATCH_ASKS_KEPT_MS * MS)

    assert asks() == []


def test_a_batch_survives_a_crash_of_its_shard() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD)
    end(shards, ON_EACH_SHARD[0], "fail")
    shards[0].flush()
    end(shards, ON_EACH_SHARD[1], "cancel")
    shards[0].restart()

    end(shards, ON_EACH_SHARD[2], "complete")

    assert the_batch(shards).ended == [1, 1, 1, 0]
    assert [job.queue for job in callbacks(shards)] == ["done", "ill"]


def test_a_record_survives_its_bytes() -> None:
    batch = Batch(batch_id(), NOW, ChainStep("done"), description="x", is_sealed=True, total=5, ended=[1, 1, 0, 0])

    assert decode_batch(encode(batch)) == batch
    assert batch.open == 3


@given(
    ways=st.lists(st.sampled_from(sorted(WAYS)), max_size=8),
    order=st.randoms(use_true_random=False),
    seal_after=st.integers(0, 9),
    home=st.integers(0, SHARDS - 1),
    crash_after=st.integers(0, 9),
)
def test_ends_in_any_order_add_up_and_the_callbacks_come_once(
    ways: list[str], order: random.Random, seal_after: int, home: int, crash_after: int
) -> None:
    shards = Shards(SHARDS)
    name = batch_id(shard=home)
    numbers = list(range(1, len(ways) + 1))
    shards.one(home, add(batch=name, create=DONE))
    for number, way in zip(numbers, ways, strict=True):
        job = member(number, expire_after_ms=1_000) if way == "expire" else member(number)
        shards.one(home, add(job, ask=number, batch=name))
    steps: list[int | None] = [*numbers]
    order.shuffle(steps)
    steps.insert(min(seal_after, len(steps)), None)

    for count, step in enumerate(steps):
        if count == crash_after:
            for machine in shards.machines:
                machine.restart()
        if step is None:
            shards.one(home, SealBatch(name))
        else:
            end(shards, step, ways[step - 1])

    batch = the_batch(shards, name)
    expected = [sum(WAYS[way] is outcome for way in ways) for outcome in Outcome]
    assert (batch.total, batch.open, batch.ended) == (len(ways), 0, expected)
    assert batch.finished_at
    verdict = "well" if all(way == "complete" for way in ways) else "ill"
    assert [job.queue for job in callbacks(shards)] == ["done", verdict]
    counts = msgspec.json.decode(callbacks(shards)[0].payload)["batch"]
    assert [counts[name] for name in OUTCOME_NAMES] == expected
    shards.check()


def test_a_batch_knows_the_queues_of_its_members() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD[:2], seal=False)
    shards.one(0, add(member(ON_EACH_SHARD[2]), member(ON_EACH_SHARD[0]), ask=2))

    assert the_batch(shards).queues == tuple(f"m{number}" for number in ON_EACH_SHARD)


def test_of_very_many_queues_a_batch_knows_that_there_are_more() -> None:
    batch = Batch(batch_id(), NOW)

    note_queues(batch, map("q{}".format, range(BATCH_QUEUES_KEPT + 1)))
    note_queues(batch, ["q1", "more"])

    assert batch.queues == (*map("q{}".format, range(BATCH_QUEUES_KEPT)), OTHER_QUEUES)
    assert is_within(batch, Reach(scope=("*",)))
    assert not is_within(batch, Reach(scope=("q*",)))


@pytest.mark.parametrize(
    ("reach", "is_known"),
    [
        (Reach("acme"), True),
        (Reach(), False),
        (Reach("beta"), False),
        (Reach("acme", ("m*", "done")), True),
        (Reach("acme", ("m*",)), False),
        (Reach("acme", ("done",)), False),
        (Reach("beta", ("*",)), False),
    ],
)
def test_a_batch_is_known_where_all_of_it_is_in_reach(reach: Reach, is_known: bool) -> None:
    batch = Batch(f"{batch_id()}_acme", NOW, ChainStep("acme|done"), queues=("acme|m1", "acme|m2"))

    assert is_within(batch, reach) is is_known
