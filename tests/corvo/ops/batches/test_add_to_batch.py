"""AddToBatch: a batch comes into being, and jobs come into it: all of a request, once, or none."""

import msgspec
import pytest

from corvo.endpoint import Answer, Plan
from corvo.model.errors import Refusal
from corvo.model.job_extras import ChainStep
from corvo.model.json_input import decode_body
from corvo.model.limits import SMALL_JSON_BYTES_MAX
from corvo.ops.batches import add_to_batch as module
from corvo.ops.batches.add_to_batch import AddToBatch, BatchBody, adding
from corvo.ops.batches.seal_batch import SealBatch
from corvo.ops.job_terms import StepBody
from corvo.queries.arrivals import GetArrivals
from corvo.rules.batches import BatchSpec, find_batch
from tests.support.batches import DONE, ON_EACH_SHARD, SHARDS, add, batch_id, member, member_id, shard_of, the_batch
from tests.support.builders import NOW, an_asking, job_id
from tests.support.machine import nothing_changes
from tests.support.shards import Shards

PLAN = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}


def plan_create(body: bytes) -> Plan:
    return PLAN["create_batch"](an_asking(), decode_body(msgspec.json.Decoder(BatchBody), body))


def test_a_batch_is_made_open_with_all_that_was_said_of_it() -> None:
    shards = Shards(SHARDS)

    assert shards.one(0, add(create=DONE)) == {}

    batch = the_batch(shards)
    assert (batch.created_at, batch.is_sealed, batch.total, batch.finished_at) == (NOW, False, 0, 0)
    assert (batch.on_complete, batch.on_success) == (ChainStep("done", b'{"album": 42}'), ChainStep("well"))
    assert (batch.on_failure, batch.description) == (ChainStep("ill"), "an album")


def test_jobs_are_counted_before_they_are_made() -> None:
    shards = Shards(SHARDS)
    far = ON_EACH_SHARD[1]

    numbers = shards[0].one(add(member(ON_EACH_SHARD[0]), member(far), create=DONE))

    assert the_batch(shards).total == 2
    assert shards[0].job(member_id(ON_EACH_SHARD[0]))  # those of the batch's own shard are there at once
    assert shards[1].jobs() == []
    assert numbers == {1: 1}
    shards.carry()
    assert shards[1].job(member_id(far))


def test_jobs_are_added_request_by_request() -> None:
    shards = Shards(SHARDS)
    shards.one(0, add(create=DONE))

    for number in (1, 2, 3):
        shards.one(0, add(member(number), ask=number))

    assert the_batch(shards).total == 3
    assert sum(len(machine.jobs()) for machine in shards.machines) == 3


@pytest.mark.parametrize("create", [DONE, None], ids=["made", "added to"])
def test_a_request_sent_again_changes_nothing_and_has_the_same_answer(create: BatchSpec | None) -> None:
    shards = Shards(SHARDS)
    if create is None:
        shards.one(0, add(create=DONE, ask=99))
    request = add(*map(member, ON_EACH_SHARD), create=create, ask=5)
    first = shards.one(0, request)

    with nothing_changes(shards[0]):
        assert shards.one(0, request) == first == {1: 1, 2: 1}

    assert the_batch(shards).total == 3
    shards.check()


def test_a_request_sent_again_after_the_seal_has_the_same_answer() -> None:
    shards = Shards(SHARDS)
    shards.one(0, add(create=DONE))
    shards.one(0, add(member(ON_EACH_SHARD[0]), ask=5))
    shards.one(0, SealBatch(batch_id()))

    with nothing_changes(shards[0]):
        assert shards.one(0, add(member(ON_EACH_SHARD[0]), ask=5)) == {}


def test_a_request_sent_again_does_not_bring_back_a_job_that_is_gone() -> None:
    shards = Shards(SHARDS)
    shards.one(0, add(create=DONE))
    request = add(member(ON_EACH_SHARD[0]), ask=5)
    shards.one(0, request)
    shards[0].restart()  # what it knows of requests is not only in memory

    shards.one(0, request)

    assert the_batch(shards).total == 1


@pytest.mark.parametrize(
    ("road", "code"),
    [([], "BATCH_NOT_FOUND"), ([add(create=DONE, seal=True)], "BATCH_SEALED")],
    ids=["unknown", "sealed"],
)
def test_a_batch_that_is_unknown_or_sealed_takes_no_jobs(road: list, code: str) -> None:
    shards = Shards(SHARDS)
    for operation in road:
        shards.one(0, operation)

    with nothing_changes(shards[0]):
        refused = shards.one(0, add(*map(member, ON_EACH_SHARD), ask=9))

    assert refused.code == code
    assert [job.queue for machine in shards.machines for job in machine.jobs() if job.queue[0] == "m"] == []


def test_jobs_may_be_added_and_the_batch_sealed_in_one_stroke() -> None:
    shards = Shards(SHARDS)
    shards.one(0, add(create=DONE))

    shards.one(0, add(member(1), ask=2, seal=True))

    assert the_batch(shards).is_sealed
    assert the_batch(shards).finished_at == 0


def test_a_body_becomes_a_batch_on_some_shard() -> None:
    plan = plan_create(
        b'{"on_complete": {"queue": "done", "payload": [1, 2]}, "on_success": {"queue": "well"},'
        b' "on_failure": {"queue": "ill"}, "description": "an album"}'
    )

    [(shard, operation)] = plan.calls
    assert operation.batch_id.startswith(f"s{shard:02d}_batch_")
    assert operation.create == BatchSpec(ChainStep("done", b"[1, 2]"), ChainStep("well"), ChainStep("ill"), "an album")
    assert (operation.jobs, operation.seal) == ([], False)
    answer = plan.conclude([{}])
    assert isinstance(answer, Answer)
    assert (answer.status, msgspec.to_builtins(answer.body)) == (201, {"batch_id": operation.batch_id})


def test_batches_are_spread_over_the_shards() -> None:
    context = an_asking()

    shards = {PLAN["create_batch"](context, BatchBody()).calls[0][0] for _ in range(50)}

    assert shards == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("body", "step"),
    [
        (b'{"callback_queue": "done"}', ChainStep("done", b"{}")),
        (b'{"callback_queue": "done", "callback_payload": {"a": 1}}', ChainStep("done", b'{"a": 1}')),
        (b"{}", None),
    ],
)
def test_the_older_names_of_the_callback_are_known(body: bytes, step: ChainStep | None) -> None:
    [(_, operation)] = plan_create(body).calls

    assert operation.create.on_complete == step


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (b'{"callback_payload": {}}', "VALIDATION_ERROR", "callback_payload"),
        (b'{"callback_queue": "a", "on_complete": {"queue": "b"}}', "VALIDATION_ERROR", "on_complete"),
        (b'{"callback_queue": "a|b"}', "VALIDATION_ERROR", "callback_queue"),
        (b'{"on_success": {}}', "VALIDATION_ERROR", "on_success.queue"),
        (b'{"on_succes": {"queue": "a"}}', "VALIDATION_ERROR", "on_succes"),
        (b'{"description": "' + b"x" * 257 + b'"}', "VALIDATION_ERROR", "description"),
        (
            b'{"on_failure": {"queue": "a", "payload": "' + b"x" * 999 + b'"}}',
            "PAYLOAD_TOO_LARGE",
            "on_failure.payload",
        ),
        (b'{"callback_queue": "a", "callback_payload": 1e999}', "VALIDATION_ERROR", "callback.payload"),
    ],
)
def test_a_bad_body_is_refused_with_its_field(body: bytes, code: str, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        plan_create(body)

    assert (refused.value.code, refused.value.field) == (code, field)


def test_an_id_that_no_shard_can_have_minted_is_unknown() -> None:
    with pytest.raises(Refusal) as refused:
        adding(an_asking(), add(batch="nonsense"), lambda ids: Answer(201, ids))

    assert refused.value.code == "BATCH_NOT_FOUND"


def test_the_answer_waits_until_the_jobs_have_arrived() -> None:
    jobs = [member(number) for number in ON_EACH_SHARD]
    plan = adding(an_asking(SHARDS), add(*jobs), lambda ids: Answer(201, ids))
    assert [shard for shard, _ in plan.calls] == [0]

    looking = plan.conclude([{1: 7, 2: 9}])

    assert isinstance(looking, Plan)
    assert looking.calls == [(1, GetArrivals(0, 7, [])), (2, GetArrivals(0, 9, []))]
    assert looking.wait_s == 0
    ids = [job.id for job in jobs]
    assert looking.instead == Answer(201, ids)
    again = looking.conclude([[], None])
    assert isinstance(again, Plan)
    assert (again.calls, again.instead) == (looking.calls, looking.instead)
    assert again.conclude([[], []]) == Answer(201, ids)


def test_each_look_waits_longer_than_the_one_before_up_to_a_bound() -> None:
    plan: Answer | Plan = adding(an_asking(SHARDS), add(member(ON_EACH_SHARD[1])), lambda ids: Answer(201, ids))
    assert isinstance(plan, Plan)
    plan = plan.conclude([{1: 1}])

    waits = []
    for _ in range(9):
        assert isinstance(plan, Plan)
        waits.append(plan.wait_s)
        plan = plan.conclude([None])

    assert waits == sorted(waits)
    assert (waits[:3], waits[-1]) == ([0.0, 0.002, 0.004], module.WAIT_S_MAX)


def test_a_job_whose_key_another_one_holds_is_answered_with_that_one() -> None:
    home, far = ON_EACH_SHARD[0], ON_EACH_SHARD[1]
    jobs = [member(far, unique_key="k"), member(home, idempotency_key="i"), member(99)]
    plan = adding(an_asking(SHARDS), add(*jobs), lambda ids: Answer(201, ids))
    numbers = dict.fromkeys(sorted({1, shard_of(99)} - {0}), 1)

    looking = plan.conclude([numbers])

    assert isinstance(looking, Plan)
    asked = {shard: [keyed.job_id for keyed in query.keyed] for shard, query in looking.calls}  # type: ignore[union-attr]
    assert asked[0] == [member_id(home)]
    assert asked[1] == [member_id(far)]
    results = [[job_id(7, shard)] if keyed else [] for shard, keyed in asked.items()]
    assert looking.conclude(results) == Answer(201, [job_id(7, 1), job_id(7, 0), member_id(99)])


def test_nothing_is_looked_for_when_all_jobs_are_on_the_batchs_own_shard() -> None:
    plan = adding(an_asking(SHARDS), add(member(ON_EACH_SHARD[0])), lambda ids: Answer(201, ids))

    assert plan.conclude([{}]) == Answer(201, [member_id(ON_EACH_SHARD[0])])


def test_an_operation_that_was_refused_left_no_batch() -> None:
    shards = Shards(SHARDS)

    shards.one(0, AddToBatch(1, batch_id(), None, True, []))

    assert find_batch(shards[0].tables, batch_id()) is None


@pytest.mark.parametrize("field", ["callback", "on_success"])
def test_a_callback_may_be_as_large_as_a_document_that_is_often_rewritten(field: str) -> None:
    context = an_asking(payload_bytes_max=10 * SMALL_JSON_BYTES_MAX)

    def body(size: int) -> BatchBody:
        payload = msgspec.Raw(b'"%b"' % (b"x" * (size - 2)))
        if field == "callback":
            return BatchBody(callback_queue="a", callback_payload=payload)
        return BatchBody(on_success=StepBody("a", payload))

    assert PLAN["create_batch"](context, body(SMALL_JSON_BYTES_MAX)).calls
    with pytest.raises(Refusal) as refused:
        PLAN["create_batch"](context, body(SMALL_JSON_BYTES_MAX + 1))
    assert (refused.value.code, refused.value.field) == ("PAYLOAD_TOO_LARGE", f"{field}.payload")
