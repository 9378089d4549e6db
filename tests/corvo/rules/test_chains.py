"""Chains: the next job is made once, wherever its queue lives, with what the one before it found out."""

import json
from typing import Any

import pytest

from corvo.endpoint import Operation
from corvo.model.job import Job, Priority
from corvo.model.job_extras import EXIT_STEP, FAILURE_STEP, Chain, ChainStep, JobExtras
from corvo.model.lifecycle import State
from corvo.model.retry import Backoff
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.ack import Ack, AckItem
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail, FailItem
from corvo.ops.jobs.fetch import Claimed
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.move import Move
from corvo.ops.jobs.reject import Reject
from corvo.ops.jobs.retry import Retry
from corvo.rules.job_creation import derived_id
from tests.support.builders import MS, SECOND, cancel, fetch, job_id, new_job
from tests.support.shards import Shards

# With three shards each of them has one of the queues of the first three steps.
PAY, PACK, SHIP, REFUND, REPORT = "pay", "stock", "mail", "refund", "audit"
STEPS = (ChainStep(PAY, b'{"ignored":true}'), ChainStep(PACK, b'{"box":"small"}'), ChainStep(SHIP))


@pytest.fixture(params=[1, 3], ids=["one shard", "three shards"])
def shards(request: pytest.FixtureRequest) -> Shards:
    return Shards(request.param)


def test_the_queues_of_these_tests_lie_on_different_shards() -> None:
    assert {shard_of_queue(queue, 3) for queue in (PAY, PACK, SHIP)} == {0, 1, 2}


def begin(shards: Shards, number: int = 1, fields: dict[str, Any] | None = None, **chain: Any) -> str:
    """A chain's first job, in its queue; its id."""
    steps = chain.pop("steps", STEPS)
    shard = shard_of_queue(steps[0].queue, len(shards.machines))
    first = job_id(number, shard)
    extras = JobExtras(chain=Chain(f"chn_{number}", 0, steps, **chain))
    for name, value in (fields or {}).items():
        setattr(extras, name, value)
    shards.one(shard, Enqueue([new_job(first, steps[0].queue, b'{"order":7}', max_retries=1, extras=extras)]))
    return first


def ask(shards: Shards, job: str, operation: Operation) -> Any:
    return shards.one(int(job[1:3]), operation)


def claim(shards: Shards, queue: str, claim_id: int = 1) -> Claimed:
    [claimed] = shards.one(shard_of_queue(queue, len(shards.machines)), fetch(queue, claim=claim_id))
    return claimed


def work(shards: Shards, queue: str, result: bytes = b"", *, exits: bool = False) -> str:
    """A worker takes the next job of the queue and completes it; its id."""
    job = claim(shards, queue)
    assert ask(shards, job.job_id, Ack(1, [AckItem(job.job_id, job.lease_token, result, b"", exits)])) == [None]
    return job.job_id


def jobs_of(shards: Shards, queue: str) -> list[Job]:
    return [job for machine in shards.machines for job in machine.jobs() if job.queue == queue]


def only(shards: Shards, queue: str) -> Job:
    [job] = jobs_of(shards, queue)
    assert job.id[1:3] == f"{shard_of_queue(queue, len(shards.machines)):02d}"
    return job


def chain_of(job: Job) -> Chain:
    assert job.extras is not None and job.extras.chain is not None
    return job.extras.chain


def payload(job: Job) -> Any:
    return json.loads(job.payload)


def count(shards: Shards) -> int:
    return sum(len(machine.jobs()) for machine in shards.machines)


# From step to step


def test_the_first_job_has_the_payload_that_it_was_sent_with(shards: Shards) -> None:
    begin(shards)

    assert payload(only(shards, PAY)) == {"order": 7}
    assert count(shards) == 1


def test_a_completed_step_makes_the_next_one_with_its_result(shards: Shards) -> None:
    first = begin(shards)

    work(shards, PAY, b'{"paid": 12.50}')

    job = only(shards, PACK)
    assert job.payload == b'{"previous_job_id":"%b","previous_result":{"paid": 12.50},"box":"small"}' % first.encode()
    assert (job.state, job.parent_id, chain_of(job).step) == (State.PENDING, first, 1)
    assert chain_of(job).id == "chn_1"
    shards.check()


def test_a_step_is_an_ordinary_job_with_the_ordinary_terms(shards: Shards) -> None:
    begin(shards, fields={"unique_key": "k", "expire_after_ms": 60_000, "batch_id": ""})

    work(shards, PAY)

    job = only(shards, PACK)
    assert (job.priority, job.max_retries, job.backoff) == (Priority.NORMAL, 3, Backoff.EXPONENTIAL)
    assert (job.base_delay_ms, job.max_delay_ms, job.tags) == (5_000, 600_000, b"")
    assert job.extras == JobExtras(chain=chain_of(job))


def test_a_step_without_a_result_has_no_previous_result(shards: Shards) -> None:
    first = begin(shards)

    work(shards, PAY)

    assert payload(only(shards, PACK)) == {"previous_job_id": first, "box": "small"}


def test_the_keys_of_the_step_win(shards: Shards) -> None:
    begin(shards, steps=(ChainStep(PAY), ChainStep(PACK, b'{"previous_result":"mine","n":1}')))

    work(shards, PAY, b'"theirs"')

    assert payload(only(shards, PACK))["previous_result"] == "mine"


@pytest.mark.parametrize("own", [b"[1,2]", b'"text"', b"null", b"7"])
def test_a_payload_that_is_no_object_is_kept_under_payload(shards: Shards, own: bytes) -> None:
    first = begin(shards, steps=(ChainStep(PAY), ChainStep(PACK, own)))

    work(shards, PAY)

    assert payload(only(shards, PACK)) == {"previous_job_id": first, "payload": json.loads(own)}


@pytest.mark.parametrize("result", [b"[1]", b'"done"', b"false", b"0", b'{"a":{"b":[null]}}', b"123456789012345678901"])
def test_any_result_is_forwarded_as_it_is(shards: Shards, result: bytes) -> None:
    begin(shards)

    work(shards, PAY, result)

    assert b'"previous_result":' + result in only(shards, PACK).payload


def test_a_chain_of_many_steps_runs_to_its_end(shards: Shards) -> None:
    queues = (PAY, PACK, SHIP, REFUND, REPORT) * 2
    begin(shards, steps=tuple(ChainStep(queue) for queue in queues))

    done = [work(shards, queue, b"%d" % number) for number, queue in enumerate(queues)]

    assert count(shards) == len(set(done)) == len(queues)
    assert all(job.state == State.COMPLETED for machine in shards.machines for job in machine.jobs())
    shards.check()


def test_two_steps_may_share_a_queue(shards: Shards) -> None:
    begin(shards, steps=(ChainStep(PAY), ChainStep(PAY), ChainStep(PAY)))

    assert len({work(shards, PAY), work(shards, PAY), work(shards, PAY)}) == 3
    assert claim_nothing(shards, PAY)


def claim_nothing(shards: Shards, queue: str) -> bool:
    return shards.one(shard_of_queue(queue, len(shards.machines)), fetch(queue)) == []


# The end


def test_the_last_step_makes_the_exit_job(shards: Shards) -> None:
    begin(shards, steps=STEPS[:2], on_exit=ChainStep(REPORT, b'{"to":"boss"}'))

    work(shards, PAY)
    second = work(shards, PACK, b'{"boxes":2}')

    job = only(shards, REPORT)
    assert payload(job) == {"previous_job_id": second, "previous_result": {"boxes": 2}, "to": "boss"}
    assert chain_of(job).step == EXIT_STEP


def test_a_step_that_exits_is_the_last(shards: Shards) -> None:
    first = begin(shards, on_exit=ChainStep(REPORT))

    work(shards, PAY, b'{"free":true}', exits=True)

    assert payload(only(shards, REPORT)) == {"previous_job_id": first, "previous_result": {"free": True}}
    assert jobs_of(shards, PACK) == []
    assert not chain_of(only(shards, REPORT)).exits


def test_exit_without_an_exit_job_ends_the_chain(shards: Shards) -> None:
    begin(shards)

    work(shards, PAY, exits=True)

    assert count(shards) == 1


def test_only_its_own_step_exits(shards: Shards) -> None:
    """A retry of the step is a new attempt: an exit that was said and refused is not remembered."""
    first = begin(shards)
    job = claim(shards, PAY)

    refused = ask(shards, first, Ack(2, [AckItem(first, job.lease_token + 1, b"", b"", True)]))
    ask(shards, first, Ack(3, [AckItem(first, job.lease_token)]))

    assert refused[0].code == "LEASE_LOST"
    assert len(jobs_of(shards, PACK)) == 1


def test_a_job_without_a_chain_may_say_exit(shards: Shards) -> None:
    shards.of_queue(PAY).one(Enqueue([new_job(job_id(1, shard_of_queue(PAY, len(shards.machines))), PAY)]))

    work(shards, PAY, exits=True)

    assert count(shards) == 1


@pytest.mark.parametrize("ending", ["completed", "dead", "cancelled"])
def test_handlers_make_nothing_however_they_end(shards: Shards, ending: str) -> None:
    begin(shards, steps=STEPS[:1], on_exit=ChainStep(REPORT), on_failure=ChainStep(REFUND))
    work(shards, PAY)
    job = claim(shards, REPORT)

    end(shards, job, ending)

    assert jobs_of(shards, REFUND) == []
    assert count(shards) == 2


def end(shards: Shards, job: Claimed, ending: str) -> None:
    """In one of the ways in which a claimed job may end."""
    if ending == "completed":
        ask(shards, job.job_id, Ack(5, [AckItem(job.job_id)]))
    elif ending == "cancelled":
        ask(shards, job.job_id, cancel(job.job_id, ask=5))
        shards.pass_time(3_600 * SECOND)  # the worker's grace, too
    else:
        for attempt in range(job.max_retries):
            if attempt:
                shards.pass_time(600 * SECOND)
                claim(shards, job.queue, 10 + attempt)
            ask(shards, job.job_id, Fail(20 + attempt, [FailItem(job.job_id, 0, f"boom {attempt}")]))
    assert shards.of_id(job.job_id).job(job.job_id).state.name.lower() == ending


# Failure


def test_a_step_that_dies_makes_the_failure_job(shards: Shards) -> None:
    first = begin(shards, on_failure=ChainStep(REFUND, b'{"why":"chain"}'))
    claim(shards, PAY)

    ask(shards, first, Fail(2, [FailItem(first, 0, "card refused")]))

    job = only(shards, REFUND)
    assert payload(job) == {"failed_job_id": first, "failed_step": 0, "error": "card refused", "why": "chain"}
    assert (chain_of(job).step, job.parent_id) == (FAILURE_STEP, first)
    assert jobs_of(shards, PACK) == []


def test_the_number_of_the_failed_step_is_told(shards: Shards) -> None:
    begin(shards, on_failure=ChainStep(REFUND))
    work(shards, PAY)
    job = claim(shards, PACK)

    end(shards, job, "dead")

    assert payload(only(shards, REFUND)) == {"failed_job_id": job.job_id, "failed_step": 1, "error": "boom 2"}


def test_without_a_failure_job_the_chain_just_ends(shards: Shards) -> None:
    first = begin(shards)
    claim(shards, PAY)

    ask(shards, first, Fail(2, [FailItem(first)]))

    assert count(shards) == 1


def test_a_failed_attempt_is_not_yet_a_failed_step(shards: Shards) -> None:
    begin(shards, on_failure=ChainStep(REFUND))
    work(shards, PAY)
    job = claim(shards, PACK)

    ask(shards, job.job_id, Fail(2, [FailItem(job.job_id)]))

    assert jobs_of(shards, REFUND) == []


def test_a_lost_lease_that_was_the_last_attempt_is_a_failure(shards: Shards) -> None:
    begin(shards, on_failure=ChainStep(REFUND))
    claim(shards, PAY)

    shards.pass_time(61 * SECOND)

    assert payload(only(shards, REFUND))["error"] == "lease of worker w1 expired"


def test_a_cancelled_step_is_a_failure(shards: Shards) -> None:
    first = begin(shards, on_failure=ChainStep(REFUND))

    ask(shards, first, cancel(first))

    assert payload(only(shards, REFUND)) == {
        "failed_job_id": first,
        "failed_step": 0,
        "error": "the job is cancelled",
    }


def test_the_error_of_an_earlier_attempt_is_not_why_it_was_cancelled(shards: Shards) -> None:
    begin(shards, on_failure=ChainStep(REFUND))
    work(shards, PAY)
    job = claim(shards, PACK)
    ask(shards, job.job_id, Fail(2, [FailItem(job.job_id, 0, "boom")]))

    ask(shards, job.job_id, cancel(job.job_id))

    assert payload(only(shards, REFUND))["error"] == "the job is cancelled"


def test_an_expired_step_is_a_failure(shards: Shards) -> None:
    begin(shards, fields={"expire_after_ms": 5_000}, on_failure=ChainStep(REFUND))

    shards.pass_time(5 * SECOND)

    assert payload(only(shards, REFUND))["error"] == "expired before it was done"


def test_a_rejected_step_is_a_failure_and_says_so(shards: Shards) -> None:
    first = begin(shards, on_failure=ChainStep(REFUND))
    ask(shards, first, Hold(5, first))

    ask(shards, first, Reject(6, first, "too dear"))

    assert payload(only(shards, REFUND))["error"] == "rejected: too dear"


@pytest.mark.parametrize("state", ["pending", "active"])
def test_a_deleted_step_is_a_failure(shards: Shards, state: str) -> None:
    first = begin(shards, on_failure=ChainStep(REFUND))
    if state == "active":
        claim(shards, PAY)

    ask(shards, first, Delete(first))

    assert payload(only(shards, REFUND)) == {"failed_job_id": first, "failed_step": 0, "error": "the job is deleted"}


def test_deleting_a_step_that_is_done_is_no_failure(shards: Shards) -> None:
    first = begin(shards, on_failure=ChainStep(REFUND))
    work(shards, PAY)

    ask(shards, first, Delete(first))

    assert jobs_of(shards, REFUND) == []
    assert len(jobs_of(shards, PACK)) == 1


# Once


def test_steps_have_ids_that_follow_from_the_chain(shards: Shards) -> None:
    begin(shards, 7)

    work(shards, PAY)

    assert only(shards, PACK).id == derived_id(shard_of_queue(PACK, len(shards.machines)), "chn_7", 1)


def test_an_ack_that_is_repeated_makes_no_second_step(shards: Shards) -> None:
    first = begin(shards)
    job = claim(shards, PAY)

    for _ in range(3):
        assert ask(shards, first, Ack(9, [AckItem(first, job.lease_token, b"1")])) == [None]

    assert len(jobs_of(shards, PACK)) == 1


def test_one_batch_ack_advances_every_chain_in_it(shards: Shards) -> None:
    firsts = [
        begin(shards, number, steps=(ChainStep(PAY), ChainStep(PACK if number % 2 else SHIP)))
        for number in (1, 2, 3, 4)
    ]
    for number in range(4):
        claim(shards, PAY, 10 + number)

    items = [AckItem(first, 0, b"%d" % number) for number, first in enumerate(firsts)]
    ask(shards, firsts[0], Ack(2, items))

    made = jobs_of(shards, PACK) + jobs_of(shards, SHIP)
    assert sorted((payload(job)["previous_job_id"], payload(job)["previous_result"]) for job in made) == [
        (first, number) for number, first in enumerate(firsts)
    ]


def test_two_chains_of_one_definition_do_not_meet(shards: Shards) -> None:
    begin(shards, 1)
    begin(shards, 2)

    work(shards, PAY)
    work(shards, PAY)

    assert {chain_of(job).id for job in jobs_of(shards, PACK)} == {"chn_1", "chn_2"}


@pytest.mark.parametrize("crash", ["giver", "taker"])
@pytest.mark.parametrize("moment", ["before", "delivered", "confirmed"])
@pytest.mark.parametrize("is_flushed", [False, True])
def test_a_crash_on_the_way_to_another_shard_loses_and_doubles_nothing(
    crash: str, moment: str, is_flushed: bool
) -> None:
    shards = Shards(3)
    first = begin(shards)
    job = claim(shards, PAY)
    giver, taker = shards.of_queue(PAY), shards.of_queue(PACK)
    target = shard_of_queue(PACK, 3)
    giver.one(Ack(2, [AckItem(first, job.lease_token)]), at=shards.now)

    def fall() -> None:
        machine = giver if crash == "giver" else taker
        if is_flushed:
            machine.flush()
        machine.restart()

    if moment == "before":
        fall()
    done = shards.deliver(giver, target)
    if moment == "delivered":
        fall()
        assert shards.deliver(giver, target) == done
    shards.confirm(giver, target, done)
    if moment == "confirmed":
        fall()
    shards.carry()

    assert len(jobs_of(shards, PACK)) == 1
    assert giver.tables.errands.targets() == []
    shards.check()


@pytest.mark.parametrize("ending", ["completed", "dead"])
def test_a_step_that_is_run_again_by_hand_is_on_its_own(shards: Shards, ending: str) -> None:
    first = begin(shards, on_failure=ChainStep(REFUND))
    end(shards, claim(shards, PAY), ending)

    ask(shards, first, Retry(50, first))
    work(shards, PAY, b'"again"')

    assert len(jobs_of(shards, PACK)) == (ending == "completed")
    assert len(jobs_of(shards, REFUND)) == (ending == "dead")


@pytest.mark.parametrize("goal", [REPORT, SHIP, REFUND])
def test_a_step_that_is_moved_takes_the_rest_of_its_chain_along(shards: Shards, goal: str) -> None:
    first = begin(shards)

    ask(shards, first, Move(5, first, goal))
    done = claim(shards, goal)
    shards.one(shard_of_queue(goal, len(shards.machines)), Ack(6, [AckItem(first, done.lease_token, b"1")]))

    assert done.job_id == first
    assert payload(only(shards, PACK)) == {"previous_job_id": first, "previous_result": 1, "box": "small"}
    work(shards, PACK)
    assert len(jobs_of(shards, SHIP)) == (2 if goal == SHIP else 1), "and it goes on from there"
    shards.check()


def test_the_definition_travels_whole(shards: Shards) -> None:
    begin(shards, on_exit=ChainStep(REPORT), on_failure=ChainStep(REFUND, b'{"k":1}'))

    work(shards, PAY)

    made = chain_of(only(shards, PACK))
    assert made == Chain("chn_1", 1, STEPS, on_exit=ChainStep(REPORT), on_failure=ChainStep(REFUND, b'{"k":1}'))


def test_a_step_waits_its_turn_behind_what_stands_in_its_queue(shards: Shards) -> None:
    shard = shard_of_queue(PACK, len(shards.machines))
    begin(shards)
    shards.one(shard, Enqueue([new_job(job_id(50, shard), PACK)]))
    shards.pass_time(MS)

    work(shards, PAY)

    assert claim(shards, PACK).job_id == job_id(50, shard)
