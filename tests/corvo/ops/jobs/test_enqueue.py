"""Enqueue: jobs come into the world once, pending or scheduled."""

import msgspec
import pytest

from corvo.endpoint import Answer, Plan
from corvo.model.errors import Refusal
from corvo.model.job import Priority
from corvo.model.job_extras import ChainStep, JobExtras
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import State
from corvo.model.limits import DELAY_MS_MAX, JOBS_PER_REQUEST_MAX
from corvo.model.retry import Backoff
from corvo.model.sharding import shard_of_queue
from corvo.model.timestamps import LATEST_NS, to_rfc3339
from corvo.ops.batches.add_to_batch import AddToBatch, BatchBody
from corvo.ops.jobs import enqueue as module
from corvo.ops.jobs.enqueue import Enqueue, EnqueueBatchBody, EnqueueBody
from corvo.queries.unknown_jobs import FindUnknown
from corvo.rules.batches import BatchSpec
from corvo.rules.job_creation import Existing
from tests.support.builders import NOW, SECOND, ack, an_asking, cancel, enqueue, fetch, job_id, new_job
from tests.support.machine import Machine, nothing_changes

PLAN = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}


def plan_one(body: bytes) -> Plan:
    return PLAN["enqueue"](an_asking(), decode_body(msgspec.json.Decoder(EnqueueBody), body))


def refusal_of(body: bytes) -> Refusal:
    with pytest.raises(Refusal) as refused:
        plan_one(body)
    return refused.value


def test_a_job_is_born_pending_and_counted() -> None:
    machine = Machine()

    assert machine.one(enqueue(1)) == [State.PENDING]

    assert machine.job(1).state == State.PENDING
    assert machine.job(1).created_at == NOW
    assert machine.queue().counts[State.PENDING] == 1
    machine.check()


@pytest.mark.parametrize(
    ("scheduled_at", "state"),
    [
        (0, State.PENDING),
        (NOW - 1, State.PENDING),
        (NOW, State.PENDING),
        (NOW + 1, State.SCHEDULED),
        (NOW + SECOND, State.SCHEDULED),
    ],
)
def test_a_job_whose_moment_lies_ahead_is_born_scheduled(scheduled_at: int, state: State) -> None:
    machine = Machine()

    assert machine.one(enqueue(1, scheduled_at=scheduled_at)) == [state]

    assert machine.job(1).state == state
    assert machine.job(1).due_at == (scheduled_at if state == State.SCHEDULED else 0)
    machine.check()


def test_every_field_of_the_request_is_kept() -> None:
    machine = Machine()
    new = new_job(
        1,
        payload=b'{"to": "x"}',
        priority=Priority.HIGH,
        max_retries=9,
        backoff=Backoff.LINEAR,
        base_delay_ms=11,
        max_delay_ms=22,
        tags=b'{"a":"b"}',
        checkpoint=b"7",
        parent_id=job_id(9),
    )

    machine.apply(enqueue(new))

    job = machine.job(1)
    for name in new.__struct_fields__:
        if name != "scheduled_at":
            assert getattr(job, name) == getattr(new, name), name


def test_the_jobs_of_one_request_are_born_in_its_order() -> None:
    machine = Machine()

    assert machine.one(enqueue(3, 1, 2)) == [State.PENDING] * 3

    assert [claim.job_id for claim in machine.one(fetch(count=3))] == [job_id(3), job_id(1), job_id(2)]


@pytest.mark.parametrize(("scheduled_at", "state"), [(0, State.PENDING), (NOW + SECOND, State.SCHEDULED)])
def test_the_same_request_again_makes_no_second_job_and_has_the_same_answer(scheduled_at: int, state: State) -> None:
    machine = Machine()
    request = enqueue(1, scheduled_at=scheduled_at)
    machine.apply(request)

    with nothing_changes(machine):
        assert machine.one(request, at=NOW + 2 * SECOND) == [state]


@pytest.mark.parametrize("later", [[fetch()], [fetch(), ack(1)], [cancel(1)]], ids=["active", "completed", "cancelled"])
def test_the_answer_is_the_same_when_the_job_has_lived_on(later: list) -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    machine.apply(*later)

    with nothing_changes(machine):
        assert machine.one(enqueue(1)) == [State.PENDING]


def test_an_id_twice_in_one_request_makes_one_job() -> None:
    machine = Machine()

    assert machine.one(enqueue(1, 1)) == [State.PENDING] * 2

    assert machine.queue().enqueued == 1
    machine.check()


def test_a_body_with_only_a_queue_gets_every_default() -> None:
    [(shard, operation)] = plan_one(b'{"queue": "mail"}').calls

    [new] = operation.jobs
    assert shard == shard_of_queue("mail", 4)
    assert new.id.startswith(f"s{shard:02d}_job_")
    assert (new.payload, new.priority, new.max_retries, new.backoff) == (b"{}", Priority.NORMAL, 3, Backoff.EXPONENTIAL)
    assert (new.base_delay_ms, new.max_delay_ms, new.scheduled_at) == (5_000, 600_000, 0)
    assert (new.tags, new.checkpoint, new.parent_id) == (b"", b"", "")


@pytest.mark.parametrize(
    ("number", "priority"),
    [
        (-(10**18), Priority.NORMAL),
        (0, Priority.NORMAL),
        (1, Priority.HIGH),
        (2, Priority.CRITICAL),
        (100, Priority.CRITICAL),
    ],
)
def test_a_priority_may_be_any_integer_and_higher_is_more_urgent(number: int, priority: Priority) -> None:
    [(_, operation)] = plan_one(b'{"queue": "mail", "priority": %d}' % number).calls

    assert operation.jobs[0].priority is priority


def test_a_full_body_becomes_the_operation() -> None:
    body = b"""{"queue": "mail", "payload": [1, 2], "priority": "critical", "max_retries": 7, "retry_backoff": "fixed",
      "retry_base_delay": "1m", "retry_max_delay_ms": 90000, "scheduled_at": "2026-01-01T00:00:01Z",
      "tags": {"a": "b"}, "checkpoint": [3], "parent_id": "s00_job_x"}"""

    [(_, operation)] = plan_one(body).calls

    [new] = operation.jobs
    assert (new.payload, new.priority, new.max_retries, new.backoff) == (b"[1, 2]", Priority.CRITICAL, 7, Backoff.FIXED)
    assert (new.base_delay_ms, new.max_delay_ms, new.scheduled_at) == (60_000, 90_000, NOW + SECOND)
    assert (new.tags, new.checkpoint, new.parent_id) == (b'{"a": "b"}', b"[3]", "s00_job_x")


def test_the_answer_names_the_job_and_its_state() -> None:
    plan = plan_one(b'{"queue": "mail"}')

    answer = plan.conclude([[State.SCHEDULED]])

    assert answer.status == 201
    assert answer.body.status == "scheduled"
    assert answer.body.job_id == plan.calls[0][1].jobs[0].id
    assert answer.body.unique_existing is False


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (b"{}", "VALIDATION_ERROR", "queue"),
        (b'{"queue": "a|b"}', "VALIDATION_ERROR", "queue"),
        (b'{"queue": "mail\\n"}', "VALIDATION_ERROR", "queue"),
        (b'{"queue": "mail", "priority": "urgent"}', "VALIDATION_ERROR", "priority"),
        (b'{"queue": "mail", "priority": 1.5}', "VALIDATION_ERROR", "priority"),
        (b'{"queue": "mail", "priority": true}', "VALIDATION_ERROR", "priority"),
        (b'{"queue": "mail", "max_retries": -1}', "VALIDATION_ERROR", "max_retries"),
        (b'{"queue": "mail", "max_retries": 1001}', "VALIDATION_ERROR", "max_retries"),
        (b'{"queue": "mail", "retry_backoff": "wild"}', "VALIDATION_ERROR", "retry_backoff"),
        (b'{"queue": "mail", "retry_base_delay": "soon"}', "VALIDATION_ERROR", "retry_base_delay"),
        (b'{"queue": "mail", "retry_max_delay": "367d"}', "VALIDATION_ERROR", "retry_max_delay"),
        (b'{"queue": "mail", "retry_base_delay_ms": -1}', "VALIDATION_ERROR", "retry_base_delay_ms"),
        (b'{"queue": "mail", "scheduled_at": "tomorrow"}', "VALIDATION_ERROR", "scheduled_at"),
        (b'{"queue": "mail", "scheduled_at": ""}', "VALIDATION_ERROR", "scheduled_at"),
        (
            b'{"queue": "mail", "retry_base_delay": "soon", "retry_base_delay_ms": 5}',
            "VALIDATION_ERROR",
            "retry_base_delay",
        ),
        (b'{"queue": "mail", "tags": []}', "VALIDATION_ERROR", "tags"),
        (b'{"queue": "mail", "parent_id": ""}', "VALIDATION_ERROR", "parent_id"),
        (b'{"queue": "mail", "queu": 1}', "VALIDATION_ERROR", "queu"),
        (b'{"queue": "mail", "payload": "' + b"x" * 999 + b'"}', "PAYLOAD_TOO_LARGE", "payload"),
    ],
)
def test_a_bad_body_is_refused_with_its_field(body: bytes, code: str, field: str) -> None:
    refusal = refusal_of(body)

    assert (refusal.code, refusal.field) == (code, field)


def test_a_payload_may_be_as_large_as_the_limit() -> None:
    [(_, operation)] = plan_one(b'{"queue": "mail", "payload": "' + b"x" * 998 + b'"}').calls

    assert len(operation.jobs[0].payload) == 1_000


def test_a_moment_may_lie_in_the_year_2199_and_no_further() -> None:
    furthest = LATEST_NS - 1

    [(_, operation)] = plan_one(b'{"queue": "q", "scheduled_at": "%b"}' % to_rfc3339(furthest).encode()).calls
    refusal = refusal_of(b'{"queue": "q", "scheduled_at": "%b"}' % to_rfc3339(furthest + 1).encode())

    assert operation.jobs[0].scheduled_at == furthest
    assert refusal.field == "scheduled_at"


def test_a_delay_in_milliseconds_wins_over_one_in_words() -> None:
    [(_, operation)] = plan_one(b'{"queue": "q", "retry_base_delay": "1m", "retry_base_delay_ms": 5}').calls

    assert operation.jobs[0].base_delay_ms == 5


def test_a_delay_may_last_a_year() -> None:
    [(_, operation)] = plan_one(b'{"queue": "q", "retry_base_delay": "366d"}').calls

    assert operation.jobs[0].base_delay_ms == DELAY_MS_MAX


def test_a_batch_is_one_operation_a_shard_and_one_answer_in_order() -> None:
    queues = [f"q{number % 5}" for number in range(20)]
    body = EnqueueBatchBody([EnqueueBody(queue) for queue in queues])

    plan = PLAN["enqueue_batch"](an_asking(), body)

    by_id = {new.id: (shard, new.queue) for shard, operation in plan.calls for new in operation.jobs}
    answer = plan.conclude([[State.PENDING] * len(operation.jobs) for _, operation in plan.calls])
    assert len(plan.calls) == len({shard_of_queue(queue, 4) for queue in queues})
    assert [by_id[job] for job in answer.body.job_ids] == [(shard_of_queue(queue, 4), queue) for queue in queues]
    assert answer.status == 201


def test_a_bad_item_refuses_the_whole_batch_and_says_which() -> None:
    body = EnqueueBatchBody([EnqueueBody("a"), EnqueueBody("a", scheduled_at="soon")])

    with pytest.raises(Refusal) as refused:
        PLAN["enqueue_batch"](an_asking(), body)

    assert refused.value.field == "jobs[1].scheduled_at"


@pytest.mark.parametrize("count", [0, JOBS_PER_REQUEST_MAX + 1])
def test_a_batch_holds_one_to_a_thousand_jobs(count: int) -> None:
    body = b'{"jobs": [' + b",".join([b'{"queue": "a"}'] * count) + b"]}"

    with pytest.raises(Refusal) as refused:
        decode_body(msgspec.json.Decoder(EnqueueBatchBody), body)

    assert refused.value.field == "jobs"


@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_a_key_that_another_job_holds_leads_to_that_job(key: str) -> None:
    machine = Machine()

    made = machine.one(enqueue(1, 2, extras=JobExtras(**{key: "k"})))

    assert made == [State.PENDING, Existing(job_id(1))]
    assert [job.id for job in machine.jobs()] == [job_id(1)]
    machine.check()


def test_a_duplicate_is_answered_200_with_the_first_job() -> None:
    answer = plan_one(b'{"queue": "mail", "unique_key": "k"}').conclude([[Existing(job_id(7))]])

    assert isinstance(answer, Answer)
    assert answer.status == 200
    assert msgspec.to_builtins(answer.body) == {"job_id": job_id(7), "status": "duplicate", "unique_existing": True}


def test_a_job_that_waits_for_others_takes_a_round_to_see_that_they_exist() -> None:
    others = [job_id(1, shard=2), job_id(2, shard=0), job_id(3, shard=2)]
    plan = plan_one(msgspec.json.encode({"queue": "mail", "depends_on": [*others, others[0]]}))
    assert plan.calls == [(2, FindUnknown([others[0], others[2]])), (0, FindUnknown([others[1]]))]

    making = plan.conclude([[], []])

    assert isinstance(making, Plan)
    [(_, operation)] = making.calls
    assert isinstance(operation, Enqueue)
    assert operation.jobs[0].extras == JobExtras(waits_for=tuple(others))
    with pytest.raises(Refusal) as refused:
        plan.conclude([[others[2]], []])
    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "depends_on")
    assert others[2] in refused.value.message


def test_a_job_of_a_batch_goes_to_the_batch() -> None:
    batch = "s02_batch_" + "1" * 26

    plan = plan_one(b'{"queue": "mail", "batch_id": "%b"}' % batch.encode())

    [(shard, operation)] = plan.calls
    assert isinstance(operation, AddToBatch)
    assert (shard, operation.batch_id, operation.create, operation.seal) == (2, batch, None, False)
    assert operation.jobs[0].id.startswith(f"s{shard_of_queue('mail', 4):02d}_job_")


def test_a_new_batch_is_made_and_sealed_with_all_its_jobs() -> None:
    jobs = [EnqueueBody(queue) for queue in ("a", "b", "c")]

    plan = PLAN["enqueue_batch"](an_asking(), EnqueueBatchBody(jobs, BatchBody(callback_queue="done")))

    [(shard, operation)] = plan.calls
    assert shard == shard_of_queue("a", 4)
    assert operation.batch_id.startswith(f"s{shard:02d}_batch_")
    assert (operation.create, operation.seal) == (BatchSpec(ChainStep("done")), True)
    assert [new.queue for new in operation.jobs] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "pending"),
        ({"scheduled_at": "2026-01-01T00:00:01Z"}, "scheduled"),
        ({"scheduled_at": "2026-01-01T00:00:00Z"}, "pending"),
    ],
)
def test_the_answer_for_a_job_of_a_batch_says_how_it_is_born(fields: dict, status: str) -> None:
    body = {"queue": "mail", "batch_id": f"s{shard_of_queue('mail', 4):02d}_batch_" + "1" * 26, **fields}

    answer = plan_one(msgspec.json.encode(body)).conclude([{}])

    assert isinstance(answer, Answer)
    assert (answer.status, answer.body.status) == (201, status)
