"""Arrivals: a shard says whether a batch's jobs have reached it, and which jobs stand for those with a key."""

from corvo.queries.arrivals import GetArrivals, Keyed
from tests.support.batches import DONE, ON_EACH_SHARD, SHARDS, add, batch_id, member, member_id
from tests.support.shards import Shards

FAR = ON_EACH_SHARD[1]


def keyed(number: int, **names: str) -> Keyed:
    return Keyed(member_id(number), f"m{number}", names.get("unique_key", ""), names.get("idempotency_key", ""))


def test_nothing_is_said_before_the_errand_has_been_done() -> None:
    shards = Shards(SHARDS)
    shards[0].apply(add(member(FAR), create=DONE))
    question = GetArrivals(0, 1, [keyed(FAR)])
    assert question.read(shards[1].tables) is None

    shards.carry()

    assert question.read(shards[1].tables) == [member_id(FAR)]
    assert GetArrivals(0, 2, []).read(shards[1].tables) is None


def test_another_job_may_stand_for_one_with_a_key() -> None:
    shards = Shards(SHARDS)
    first = member(FAR, unique_key="k", idempotency_key="i")
    shards.one(0, add(first, create=DONE))
    other = "s01_job_" + "9" * 26
    read = lambda **names: GetArrivals(0, 1, [Keyed(other, f"m{FAR}", **names)]).read(shards[1].tables)  # noqa: E731

    assert read(unique_key="k", idempotency_key="") == [first.id]
    assert read(unique_key="", idempotency_key="i") == [first.id]
    assert read(unique_key="free", idempotency_key="free") == [other]


def test_a_shard_has_received_all_that_it_sent_to_itself() -> None:
    shards = Shards(SHARDS)
    near = ON_EACH_SHARD[0]
    shards.one(0, add(member(near, unique_key="k"), create=DONE, batch=batch_id()))

    assert GetArrivals(0, 0, [keyed(near, unique_key="k")]).read(shards[0].tables) == [member_id(near)]
