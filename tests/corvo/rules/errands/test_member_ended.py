"""MemberEnded: the batch counts an end, unless it is over or forgotten."""

from corvo.model.job_extras import Outcome
from corvo.rules.cascades import run_cascades
from corvo.rules.errands.member_ended import MemberEnded
from tests.support.batches import ON_EACH_SHARD, SHARDS, a_batch, batch_id, the_batch
from tests.support.machine import nothing_changes
from tests.support.shards import Shards


def test_an_end_is_counted_under_its_outcome() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD)

    MemberEnded(batch_id(), Outcome.CANCELLED).run(shards[0].tables)

    assert the_batch(shards).ended == [0, 0, 1, 0]


def test_a_batch_that_is_over_or_forgotten_counts_nothing() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, seal=True)

    with nothing_changes(shards[0]):
        for name in (batch_id(), batch_id(2)):
            MemberEnded(name, Outcome.DEAD).run(shards[0].tables)
            run_cascades(shards[0].tables)
