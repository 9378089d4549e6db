"""One batch, as its shard knows it now."""

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.sharding import shard_of_queue
from corvo.queries import batches as module
from corvo.queries.batches import GetBatch, batch_view
from tests.support.batches import DONE, ON_EACH_SHARD, SHARDS, a_batch, add, batch_id, callbacks, end, the_batch
from tests.support.builders import an_asking
from tests.support.shards import Shards

PLAN = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}


def view(shards: Shards) -> dict:
    return msgspec.json.decode(msgspec.json.encode(batch_view(the_batch(shards), SHARDS)))


def test_an_open_batch() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD, seal=False)
    end(shards, ON_EACH_SHARD[0], "cancel")

    assert view(shards) == {
        "id": batch_id(),
        "state": "open",
        "total": 3,
        "pending": 2,
        "succeeded": 0,
        "failed": 1,
        "completed": 0,
        "dead": 0,
        "cancelled": 1,
        "deleted": 0,
        "created_at": "2026-01-01T00:00:00.000000000Z",
        "description": "an album",
        "on_complete": {"queue": "done", "payload": {"album": 42}},
        "on_success": {"queue": "well", "payload": {}},
        "on_failure": {"queue": "ill", "payload": {}},
    }


def test_a_finished_batch_names_the_jobs_that_were_made() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, *ON_EACH_SHARD)
    assert view(shards)["state"] == "sealed"

    for number in ON_EACH_SHARD:
        end(shards, number, "complete")

    shown = view(shards)
    done, well = callbacks(shards)
    assert (shown["state"], shown["completed"], shown["pending"]) == ("completed", 3, 0)
    assert shown["finished_at"] == "2026-01-01T00:00:00.000000000Z"
    assert shown["on_complete"]["job_id"] == done.id
    assert shown["on_success"]["job_id"] == well.id
    assert "job_id" not in shown["on_failure"]


def test_a_batch_is_read_from_its_shard() -> None:
    shards = Shards(SHARDS)
    shards.one(1, add(batch=batch_id(shard=1), create=DONE))

    plan = PLAN["get_batch"](an_asking(SHARDS), None, batch_id(shard=1))

    [(shard, query)] = plan.calls
    assert (shard, query) == (1, GetBatch(batch_id(shard=1)))
    assert plan.conclude([query.read(shards[1].tables)]).body.id == batch_id(shard=1)


def test_an_unknown_batch_is_refused() -> None:
    shards = Shards(SHARDS)

    for attempt in (
        lambda: GetBatch(batch_id()).read(shards[0].tables),
        lambda: PLAN["get_batch"](an_asking(), None, "nonsense"),
    ):
        with pytest.raises(Refusal) as refused:
            attempt()
        assert refused.value.code == "BATCH_NOT_FOUND"


def test_the_shards_of_callbacks_are_those_of_their_queues() -> None:
    shards = Shards(SHARDS)
    a_batch(shards, seal=True)

    for job in callbacks(shards):
        assert job.id.startswith(f"s{shard_of_queue(job.queue, SHARDS):02d}_")
