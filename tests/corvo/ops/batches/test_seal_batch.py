"""SealBatch: no more jobs; what is in it decides when it is over."""

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.ops.batches import seal_batch as module
from corvo.ops.batches.seal_batch import SealBatch
from tests.support.batches import ON_EACH_SHARD, SHARDS, a_batch, batch_id, end, the_batch
from tests.support.builders import an_asking
from tests.support.machine import nothing_changes
from tests.support.shards import Shards

PLAN = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}


def test_a_sealed_batch_waits_for_its_last_job() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD, seal=False)

    shards.one(0, SealBatch(batch_id()))

    assert the_batch(shards).is_sealed
    assert the_batch(shards).finished_at == 0
    for number in ON_EACH_SHARD:
        end(shards, number, "complete")
    assert the_batch(shards).finished_at == shards.now


def test_to_seal_again_changes_nothing() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD, seal=True)

    with nothing_changes(shards[0]):
        assert shards.one(0, SealBatch(batch_id())) is None


def test_an_unknown_batch_is_refused() -> None:
    shards = Shards(SHARDS)

    with nothing_changes(shards[0]):
        assert shards.one(0, SealBatch(batch_id())).code == "BATCH_NOT_FOUND"


@pytest.mark.parametrize("name", PLAN)
def test_both_routes_ask_the_shard_of_the_batch(name: str) -> None:
    plan = PLAN[name](an_asking(), None, batch_id(shard=2))

    assert plan.calls == [(2, SealBatch(batch_id(shard=2)))]
    assert msgspec.to_builtins(plan.conclude([None]).body) == {"status": "sealed"}


def test_an_id_that_no_shard_can_have_minted_is_unknown() -> None:
    with pytest.raises(Refusal) as refused:
        PLAN["seal_batch"](an_asking(), None, "nonsense")

    assert refused.value.code == "BATCH_NOT_FOUND"
