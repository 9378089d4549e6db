"""Ack: a job completes once."""

import msgspec
import pytest

from corvo.model.errors import Refusal, Refused
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import State
from corvo.ops.jobs import ack as module
from corvo.ops.jobs.ack import AckBatchBody, AckBatchItem, AckBody
from tests.support.builders import NOW, SECOND, ack, an_asking, cancel, enqueue, fail, fetch, job_id, reclaim
from tests.support.machine import Machine, nothing_changes

PLAN = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}


def with_active_job() -> Machine:
    machine = Machine()
    machine.apply(enqueue(1, checkpoint=b"1"), fetch(lease_ms=10_000))
    return machine


@pytest.mark.parametrize("token", [1, 0], ids=["with its token", "without a token"])
def test_an_active_job_is_completed_by_who_holds_it(token: int) -> None:
    machine = with_active_job()

    assert machine.one(ack(1, ask=9, token=token, result=b'{"ok":1}'), at=NOW + SECOND) == [None]

    job = machine.job(1)
    assert (job.state, job.result, job.completed_at, job.settled_id) == (State.COMPLETED, b'{"ok":1}', NOW + SECOND, 9)
    assert machine.queue().completed == 1
    machine.check()


@pytest.mark.parametrize(("sent", "kept"), [(b"", b"1"), (b"2", b"2")])
def test_a_checkpoint_is_replaced_only_by_a_new_one(sent: bytes, kept: bytes) -> None:
    machine = with_active_job()

    machine.apply(ack(1, checkpoint=sent))

    assert machine.job(1).checkpoint == kept


@pytest.mark.parametrize(
    "again",
    [ack(1, ask=9, token=1), ack(1, ask=9), ack(1, ask=10, token=1), ack(1, ask=10, token=1, result=b"2")],
    ids=["same request", "same request without token", "same lease", "same lease, other result"],
)
def test_an_ack_sent_again_gets_the_same_answer_and_changes_nothing(again) -> None:
    machine = with_active_job()
    machine.apply(ack(1, ask=9, token=1, result=b"1"))

    with nothing_changes(machine):
        assert machine.one(again, at=NOW + 60 * SECOND) == [None]


# What happened before · the ack · the refusal
REFUSALS = {
    "no such job": ([], ack(7, token=1), "JOB_NOT_FOUND"),
    "no such job, no token": ([], ack(7), "JOB_NOT_FOUND"),
    "a token not yet given": ([], ack(1, token=2), "LEASE_LOST"),
    "lease over": ([reclaim()], ack(1, token=1), "LEASE_LOST"),
    "lease over, no token": ([reclaim()], ack(1), "WRONG_STATE"),
    "claimed by another since": ([reclaim(), fetch(claim=2)], ack(1, token=1), "LEASE_LOST"),
    "failed": ([fail(1, ask=5)], ack(1, token=1), "LEASE_LOST"),
    "cancelled": ([cancel(1)], ack(1, token=1), "LEASE_LOST"),
    "cancelled, no token": ([cancel(1)], ack(1), "WRONG_STATE"),
    "completed by another request, no token": ([ack(1, ask=5)], ack(1, ask=6), "WRONG_STATE"),
    "completed under a newer lease": (
        [reclaim(), fetch(claim=2), ack(1, ask=5, token=2)],
        ack(1, ask=6, token=1),
        "LEASE_LOST",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_an_ack_that_comes_too_late_is_refused_and_nothing_changes(case: str) -> None:
    before, operation, code = REFUSALS[case]
    machine = with_active_job()
    machine.apply(*before, at=NOW + 10 * SECOND)

    with nothing_changes(machine):
        [refused] = machine.one(operation)

    assert isinstance(refused, Refused)
    assert refused.code == code


def test_an_ack_in_time_for_a_lease_that_nobody_ended_yet_still_counts() -> None:
    machine = with_active_job()

    assert machine.one(ack(1, token=1), at=NOW + 11 * SECOND) == [None]


def test_each_item_of_a_batch_is_answered_for_itself() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(count=2))

    first, stranger, second = machine.one(ack(1, 7, 2))

    assert (first, stranger.code, second) == (None, "JOB_NOT_FOUND", None)
    assert machine.queue().completed == 2
    machine.check()


def test_a_job_twice_in_one_batch_completes_once() -> None:
    machine = with_active_job()

    assert machine.one(ack(1, 1, ask=9)) == [None, None]

    assert machine.queue().completed == 1


def test_one_ack_goes_to_the_shard_of_the_job() -> None:
    body = decode_body(msgspec.json.Decoder(AckBody), b'{"result": {"a": 1}, "checkpoint": null, "lease_token": 4}')

    plan = PLAN["ack"](an_asking(), body, job_id(1, shard=3))

    [(shard, operation)] = plan.calls
    [item] = operation.items
    assert shard == 3
    assert operation.ask_id > 0
    assert (item.job_id, item.lease_token, item.result, item.checkpoint) == (job_id(1, shard=3), 4, b'{"a": 1}', b"")
    assert msgspec.json.encode(plan.conclude([[None]]).body) == b'{"status":"ok"}'


def test_a_refused_ack_is_a_refusal() -> None:
    plan = PLAN["ack"](an_asking(), AckBody(), job_id(1))

    with pytest.raises(Refusal) as refused:
        plan.conclude([[Refused("LEASE_LOST", "too late")]])

    assert (refused.value.code, refused.value.status) == ("LEASE_LOST", 409)


def test_a_batch_of_acks_is_spread_over_shards_under_one_ask() -> None:
    ids = [job_id(number, shard=number % 3) for number in range(1, 6)]

    plan = PLAN["ack_batch"](an_asking(), AckBatchBody([AckBatchItem(job_id=one) for one in ids]))

    assert {shard: [item.job_id for item in operation.items] for shard, operation in plan.calls} == {
        1: [ids[0], ids[3]],
        2: [ids[1], ids[4]],
        0: [ids[2]],
    }
    assert len({operation.ask_id for _, operation in plan.calls}) == 1
    answer = plan.conclude([[None, Refused("LEASE_LOST", "late")], [None, None], [None]])
    assert msgspec.to_builtins(answer.body) == {
        "acked": 4,
        "results": [{"status": "ok"}] * 3 + [{"error": "late", "code": "LEASE_LOST"}] + [{"status": "ok"}],
    }


def test_an_id_that_no_shard_can_have_minted_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(Refusal, match="no job has the id"):
        PLAN["ack"](an_asking(), AckBody(), "nonsense")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"lease_token": 0}', "lease_token"),
        (b'{"lease_token": -1}', "lease_token"),
        (b'{"lease_token": 9007199254740992}', "lease_token"),
        (b'{"lease_token": "1"}', "lease_token"),
        (b'{"resutl": 1}', "resutl"),
    ],
)
def test_a_bad_body_is_refused_with_its_field(body: bytes, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(msgspec.json.Decoder(AckBody), body)

    assert refused.value.field == field


def test_a_document_that_is_too_large_is_refused_with_its_place() -> None:
    large = msgspec.Raw(b'"' + b"x" * 300_000 + b'"')

    with pytest.raises(Refusal) as refused:
        PLAN["ack_batch"](an_asking(), AckBatchBody([AckBatchItem(job_id=job_id(1), result=large)]))

    assert (refused.value.code, refused.value.field) == ("PAYLOAD_TOO_LARGE", "acks[0].result")
