"""Fail: with attempts left the job waits out its backoff, with none it is dead."""

import msgspec
import pytest

from corvo.model.errors import Refusal, Refused
from corvo.model.job_extras import JobExtras
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import State
from corvo.model.limits import BACKTRACE_CHARS_MAX, ERROR_CHARS_MAX, ERRORS_KEPT_PER_JOB
from corvo.model.retry import Backoff
from corvo.ops.jobs import fail as module
from corvo.ops.jobs.fail import FailBatchBody, FailBatchItem, FailBody, Failure
from tests.support.builders import (
    MS,
    NOW,
    SECOND,
    ack,
    an_asking,
    cancel,
    enqueue,
    fail,
    fetch,
    job_id,
    promote,
    reclaim,
)
from tests.support.machine import Machine, nothing_changes

PLAN = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}


def with_active_job(**fields: object) -> Machine:
    machine = Machine()
    machine.apply(enqueue(1, **fields), fetch(lease_ms=10_000))
    return machine


def test_a_failed_attempt_is_retried_after_its_backoff() -> None:
    machine = with_active_job(max_retries=3, backoff=Backoff.FIXED, base_delay_ms=700)

    [failure] = machine.one(fail(1, token=1, ask=9, error="boom", backtrace="line 1"), at=NOW + SECOND)

    assert failure == Failure(State.RETRYING, 2, NOW + SECOND + 700 * MS)
    job = machine.job(1)
    assert (job.state, job.due_at, job.settled_id, job.failed_at) == (State.RETRYING, NOW + SECOND + 700 * MS, 9, 0)
    [error] = machine.tables.errors(job_id(1))
    assert (error.claim, error.attempt, error.error, error.backtrace) == (1, 1, "boom", "line 1")
    assert error.created_at == NOW + SECOND
    assert machine.queue().failed == 1
    machine.check()


@pytest.mark.parametrize("max_retries", [0, 1])
def test_the_last_attempt_that_fails_leaves_the_job_dead(max_retries: int) -> None:
    machine = with_active_job(max_retries=max_retries)

    assert machine.one(fail(1, error="boom"), at=NOW + SECOND) == [Failure(State.DEAD, 0, 0)]

    assert (machine.job(1).state, machine.job(1).failed_at) == (State.DEAD, NOW + SECOND)
    machine.check()


@pytest.mark.parametrize(
    ("backoff", "delays_ms"),
    [
        (Backoff.NONE, [0, 0, 0]),
        (Backoff.FIXED, [100, 100, 100]),
        (Backoff.LINEAR, [100, 200, 300]),
        (Backoff.EXPONENTIAL, [100, 200, 350]),
    ],
)
def test_delays_follow_the_backoff_of_the_job(backoff: Backoff, delays_ms: list[int]) -> None:
    machine = Machine()
    machine.apply(enqueue(1, max_retries=4, backoff=backoff, base_delay_ms=100, max_delay_ms=350))

    seen = []
    for number in range(1, 4):
        machine.apply(promote(), fetch(claim=number))
        [failure] = machine.one(fail(1, ask=number))
        seen.append((failure.next_attempt_at - machine.now) // MS)
        machine.now = failure.next_attempt_at

    assert seen == delays_ms


def test_a_fail_sent_again_gets_the_same_answer_and_changes_nothing() -> None:
    machine = with_active_job()
    first = machine.one(fail(1, ask=9, token=1))

    with nothing_changes(machine):
        assert machine.one(fail(1, ask=9, token=1), at=NOW + SECOND) == first


def test_a_fail_sent_again_gets_the_same_answer_when_the_job_is_pending_once_more() -> None:
    machine = with_active_job(backoff=Backoff.NONE)
    first = machine.one(fail(1, ask=9, token=1))
    machine.apply(promote())

    with nothing_changes(machine):
        assert machine.one(fail(1, ask=9, token=1)) == first


def test_a_fatal_fail_sent_again_gets_the_same_answer() -> None:
    machine = with_active_job(max_retries=1)
    first = machine.one(fail(1, ask=9))

    with nothing_changes(machine):
        assert machine.one(fail(1, ask=9)) == first


def test_a_fail_sent_again_after_the_next_claim_gets_its_old_answer_and_does_not_fail_that_one() -> None:
    machine = with_active_job(backoff=Backoff.NONE)
    [first] = machine.one(fail(1, ask=9, token=1))
    machine.apply(promote(), fetch(claim=2))

    with nothing_changes(machine):
        assert machine.one(fail(1, ask=9, token=1)) == [first]


def test_a_fail_without_a_token_sent_again_after_the_next_claim_does_not_fail_that_one() -> None:
    machine = with_active_job(backoff=Backoff.NONE)
    machine.apply(fail(1, ask=9), promote(), fetch(claim=2))

    with nothing_changes(machine):
        machine.one(fail(1, ask=9))


REFUSALS = {
    "no such job": ([], fail(7, token=1), "JOB_NOT_FOUND"),
    "a token not yet given": ([], fail(1, token=2), "LEASE_LOST"),
    "lease over": ([reclaim()], fail(1, token=1), "LEASE_LOST"),
    "lease over, no token": ([reclaim()], fail(1), "WRONG_STATE"),
    "failed by another request": ([fail(1, ask=5)], fail(1, ask=6, token=1), "LEASE_LOST"),
    "completed": ([ack(1, ask=5)], fail(1, ask=6, token=1), "LEASE_LOST"),
    "cancelled": ([cancel(1, ask=5)], fail(1, ask=6, token=1), "LEASE_LOST"),
    "cancelled, no token": ([cancel(1, ask=5)], fail(1, ask=6), "WRONG_STATE"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_fail_that_comes_too_late_is_refused_and_nothing_changes(case: str) -> None:
    before, operation, code = REFUSALS[case]
    machine = with_active_job()
    machine.apply(*before, at=NOW + 10 * SECOND)

    with nothing_changes(machine):
        [refused] = machine.one(operation)

    assert isinstance(refused, Refused)
    assert refused.code == code


def test_each_item_of_a_batch_is_answered_for_itself() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(count=2))

    first, stranger, second = machine.one(fail(1, 7, 2))

    assert (first.state, stranger.code, second.state) == (State.RETRYING, "JOB_NOT_FOUND", State.RETRYING)
    machine.check()


def test_a_job_twice_in_one_batch_fails_once() -> None:
    machine = with_active_job()

    first, second = machine.one(fail(1, 1, ask=9))

    assert first == second
    assert machine.queue().failed == 1


def test_one_fail_goes_to_the_shard_of_the_job() -> None:
    body = decode_body(msgspec.json.Decoder(FailBody), b'{"error": "boom", "backtrace": null, "lease_token": 2}')

    plan = PLAN["fail"](an_asking(), body, job_id(1, shard=2))

    [(shard, operation)] = plan.calls
    [item] = operation.items
    assert (shard, item.lease_token, item.error, item.backtrace) == (2, 2, "boom", "")
    assert msgspec.to_builtins(plan.conclude([[Failure(State.RETRYING, 2, NOW)]]).body) == {
        "status": "retrying",
        "attempts_remaining": 2,
        "next_attempt_at": "2026-01-01T00:00:00.000000000Z",
    }
    assert msgspec.to_builtins(plan.conclude([[Failure(State.DEAD, 0, 0)]]).body) == {
        "status": "dead",
        "attempts_remaining": 0,
    }


def test_a_refused_fail_is_a_refusal() -> None:
    plan = PLAN["fail"](an_asking(), FailBody(), job_id(1))

    with pytest.raises(Refusal) as refused:
        plan.conclude([[Refused("WRONG_STATE", "no")]])

    assert refused.value.code == "WRONG_STATE"


def test_a_batch_is_answered_item_by_item() -> None:
    ids = [job_id(1, shard=0), job_id(2, shard=1)]

    plan = PLAN["fail_batch"](an_asking(), FailBatchBody([FailBatchItem(job_id=one) for one in ids]))

    answer = plan.conclude([[Failure(State.DEAD, 0, 0)], [Refused("LEASE_LOST", "late")]])
    assert msgspec.to_builtins(answer.body) == {
        "failed": 1,
        "results": [{"status": "dead", "attempts_remaining": 0}, {"error": "late", "code": "LEASE_LOST"}],
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"error": "x" * (ERROR_CHARS_MAX + 1)}, "error"),
        ({"backtrace": "x" * (BACKTRACE_CHARS_MAX + 1)}, "backtrace"),
        ({"lease_token": 0}, "lease_token"),
        ({"reason": "x"}, "reason"),
    ],
)
def test_a_bad_body_is_refused_with_its_field(body: dict, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(msgspec.json.Decoder(FailBody), msgspec.json.encode(body))

    assert refused.value.field == field


def test_a_failure_that_is_not_worth_a_retry_is_the_last() -> None:
    machine = with_active_job(max_retries=5)

    assert machine.one(fail(1, ask=7, is_final=True)) == [Failure(State.DEAD, 0, 0)]
    assert machine.one(fail(1, ask=7, is_final=True)) == [Failure(State.DEAD, 0, 0)], "asked again, answered alike"

    machine.check()


def test_a_worker_may_choose_when_to_try_again() -> None:
    machine = with_active_job(max_retries=3, backoff=Backoff.FIXED, base_delay_ms=700)

    assert machine.one(fail(1, delay_ms=90_000)) == [Failure(State.RETRYING, 2, NOW + 90 * SECOND)]
    assert machine.one(promote(), at=NOW + 90 * SECOND - 1) == 0
    assert machine.one(promote(), at=NOW + 90 * SECOND) == 1


def test_a_snooze_that_is_repeated_gets_its_answer_also_when_the_job_has_gone_on() -> None:
    machine = Machine()
    machine.apply(enqueue(1, max_retries=2), fetch())
    first = machine.one(fail(1, ask=7, snooze_ms=0))
    machine.one(promote())

    with nothing_changes(machine):
        assert machine.one(fail(1, ask=7, snooze_ms=0)) == first
    machine.one(fetch(claim=2))
    with nothing_changes(machine):
        assert machine.one(fail(1, ask=7, snooze_ms=0)) == first


def test_a_job_that_is_snoozed_between_its_failures_keeps_no_more_errors_than_any_other() -> None:
    machine = Machine()
    machine.apply(enqueue(1, max_retries=1_000, backoff=Backoff.NONE))
    for claim in range(1, 4 * ERRORS_KEPT_PER_JOB):
        snooze_ms = None if claim % 2 else 0
        machine.apply(fetch(claim=claim), fail(1, ask=claim, token=claim, snooze_ms=snooze_ms), promote())

    assert 0 < len(machine.tables.errors(job_id(1))) <= ERRORS_KEPT_PER_JOB


def test_a_snoozed_job_comes_back_with_all_its_attempts() -> None:
    machine = with_active_job(max_retries=1)

    assert machine.one(fail(1, ask=7, token=1, snooze_ms=5_000)) == [Failure(State.SCHEDULED, 1, NOW + 5 * SECOND)]
    assert machine.one(fail(1, ask=7, token=1, snooze_ms=5_000)) == [Failure(State.SCHEDULED, 1, NOW + 5 * SECOND)]

    assert machine.tables.errors(job_id(1)) == [] and machine.queue().failed == 0, "nothing has failed"
    machine.apply(promote(), at=NOW + 5 * SECOND)
    [claimed] = machine.one(fetch(claim=2))
    assert (claimed.attempt, claimed.lease_token) == (1, 2), "the same attempt under a new lease"
    machine.check()


def test_jitter_shortens_the_delay_by_the_same_part_on_every_replica() -> None:
    dues = set()
    for number in range(1, 30):
        machine = Machine()
        machine.apply(
            enqueue(number, extras=JobExtras(jitter_permille=500), backoff=Backoff.FIXED, base_delay_ms=10_000), fetch()
        )
        [failure] = machine.one(fail(number))
        assert NOW + 5 * SECOND < failure.next_attempt_at <= NOW + 10 * SECOND
        machine.restart()
        assert machine.job(number).due_at == failure.next_attempt_at
        dues.add(failure.next_attempt_at)
    assert len(dues) > 20, "jobs that fail together do not come back together"


def test_a_failed_attempt_says_whose_it_was_and_when_it_began() -> None:
    machine = with_active_job()

    machine.apply(fail(1, error="boom"), at=NOW + SECOND)

    [error] = machine.tables.errors(job_id(1))
    assert (error.worker_id, error.started_at, error.created_at) == ("w1", NOW, NOW + SECOND)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (FailBody(retry=False), {"is_final": True}),
        (FailBody(retry_after="90s"), {"delay_ms": 90_000}),
        (FailBody(retry_after_ms=0), {"delay_ms": 0}),
        (FailBody(snooze="1m"), {"snooze_ms": 60_000}),
        (FailBody(snooze_ms=5), {"snooze_ms": 5}),
        (FailBody(), {}),
    ],
)
def test_the_worker_s_wishes_reach_the_machine(body: FailBody, expected: dict[str, object]) -> None:
    assert module.fail_item(job_id(1), body) == module.FailItem(job_id(1), **expected)


@pytest.mark.parametrize("body", [FailBody(snooze="1s", retry=False), FailBody(snooze="1s", retry_after="1s")])
def test_a_snooze_is_no_failure_and_takes_no_wishes_for_one(body: FailBody) -> None:
    with pytest.raises(Refusal, match="snooze: a snoozed job has not failed"):
        module.fail_item(job_id(1), body)


@pytest.mark.parametrize("field", ["retry_after", "snooze"])
def test_a_span_that_is_none_is_refused_by_name(field: str) -> None:
    with pytest.raises(Refusal, match=f"^{field}: "):
        module.fail_item(job_id(1), FailBody(**{field: "soon"}))
