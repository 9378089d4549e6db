"""MakeMember: a job of a batch is made, or the batch learns that it is not."""

import pytest

from corvo.model.job_extras import Outcome
from tests.support.batches import DONE, ON_EACH_SHARD, SHARDS, add, batch_id, callbacks, member, shard_of, the_batch
from tests.support.builders import job_id
from tests.support.shards import Shards


@pytest.mark.parametrize("number", ON_EACH_SHARD)
@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_a_job_whose_key_another_one_holds_is_counted_as_gone(number: int, key: str) -> None:
    shards = Shards(SHARDS)
    shards.one(0, add(member(number, **{key: "k"}), create=DONE))
    twin = member(number, **{key: "k"})
    twin.id = job_id(77, shard_of(number))

    shards.one(0, add(twin, create=DONE, seal=True, batch=batch_id(2)))

    batch = the_batch(shards, batch_id(2))
    assert (batch.total, batch.ended[Outcome.DELETED], batch.finished_at) == (1, 1, shards.now)
    assert [job.queue for job in callbacks(shards)] == ["done", "ill"]
    shards.check()


def test_a_key_twice_in_one_request_makes_one_job() -> None:
    shards = Shards(SHARDS)
    number = ON_EACH_SHARD[1]
    twin = member(number, unique_key="k")
    twin.id = job_id(77, shard_of(number))

    shards.one(0, add(member(number, unique_key="k"), twin, create=DONE, seal=True))

    assert len(shards[1].jobs()) == 1
    assert (the_batch(shards).total, the_batch(shards).open) == (2, 1)
