"""Replay: a new job that begins where another one stands."""

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.job import Priority
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import State
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.replay import ENDPOINTS, ReplayBody
from corvo.queries.job import GetJob, JobRecord
from tests.support.builders import a_job, an_asking, job_id

PLAN = ENDPOINTS[0].plan


def test_the_job_is_read_and_a_new_one_enqueued_where_its_queue_lives() -> None:
    first = PLAN(an_asking(), ReplayBody(iteration=1), job_id(1, shard=2))
    assert first.calls == [(2, GetJob(job_id(1, shard=2)))]

    old = a_job(queue="mail", priority=Priority.HIGH, payload=b"[1]", tags=b'{"a":"b"}', checkpoint=b"7", max_retries=9)
    second = first.conclude([JobRecord(old, [])])

    [(shard, operation)] = second.calls
    assert shard == shard_of_queue("mail", 4)
    assert isinstance(operation, Enqueue)
    [new] = operation.jobs
    assert new.id.startswith(f"s{shard:02d}_job_") and new.id != old.id
    assert (new.queue, new.priority, new.payload, new.tags) == ("mail", Priority.HIGH, b"[1]", b'{"a":"b"}')
    assert (new.checkpoint, new.max_retries, new.parent_id, new.extras) == (b"7", 9, old.id, None)
    answer = second.conclude([[State.PENDING]])
    assert (answer.status, answer.body.job_id, answer.body.status) == (201, new.id, "pending")


@pytest.mark.parametrize("body", [{}, {"from": 0}, {"from": -1}, {"from": "1"}])
def test_it_begins_at_a_number_from_1_on(body: dict) -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(msgspec.json.Decoder(ReplayBody), msgspec.json.encode(body))

    assert refused.value.field == "from"
