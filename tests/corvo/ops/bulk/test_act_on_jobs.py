"""ActOnJobs: each job as if it had been asked for alone, and a slice that comes again changes nothing."""

from typing import Any

import pytest

from corvo.model.job import Priority
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import RULES, STATE_NAMES, State, Verb
from corvo.model.limits import CLAIMED_BYTES_MAX
from corvo.model.sharding import shard_of_queue
from corvo.ops.bulk.act_on_jobs import ActOnJobs, single
from corvo.ops.jobs.change_priority import WAITING
from corvo.ops.jobs.hold import Hold
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.bulk import Action, Order, find_memo
from tests.support.builders import NOW, SECOND, ack, cancel, enqueue, fail, fetch, job_id, ring
from tests.support.courier_sockets import a_machine_with
from tests.support.machine import Machine, nothing_changes

BULK = "bulk_18866b26d5a7000400000abcde"
KEPT_MS = 60_000
ALL = frozenset(State)
ALLOWED: dict[Action, frozenset[State]] = {
    Action.RETRY: RULES[Verb.RUN_AGAIN].sources,
    Action.REQUEUE: RULES[Verb.REQUEUE].sources,
    Action.DELETE: ALL,
    Action.CANCEL: RULES[Verb.CANCEL].sources,
    Action.MOVE: ALL - {State.ACTIVE},
    Action.CHANGE_PRIORITY: WAITING,
    Action.HOLD: RULES[Verb.HOLD].sources,
    Action.APPROVE: RULES[Verb.APPROVE].sources,
    Action.REJECT: RULES[Verb.REJECT].sources,
}


def an_order(action: Action, **fields: Any) -> Order:
    return Order(action, "other", Priority.HIGH, "why", **fields)


def act(action: Action, *jobs: int | str, step: int = 1, bulk: str = BULK, **fields: Any) -> ActOnJobs:
    return ActOnJobs(bulk, step, an_order(action, **fields), [job_id(job) for job in jobs], KEPT_MS)


@pytest.mark.parametrize("state", State, ids=STATE_NAMES)
@pytest.mark.parametrize("action", Action, ids=lambda action: action.name.lower())
def test_each_job_is_changed_or_refused_as_by_the_action_on_it_alone(action: Action, state: State) -> None:
    machine, alone = a_machine_with(state), a_machine_with(state)
    operation = act(action, 2, 1)
    expected = alone.one(single(operation.order, 9, job_id(1)))

    unknown, outcome = machine.one(operation)

    assert unknown.code == "JOB_NOT_FOUND", "one that nobody knows hinders no other"
    if state in ALLOWED[action]:
        assert outcome is None
        assert [job.state for job in machine.jobs()] == [job.state for job in alone.jobs()]
        machine.check()
        with nothing_changes(machine):
            assert machine.one(operation)[1] is None, "the same slice again"
    else:
        assert outcome == expected
        assert outcome.code == "WRONG_STATE"
        assert machine.job(1) == alone.job(1)


def test_a_retried_job_that_has_run_and_died_since_is_not_retried_by_the_same_slice() -> None:
    machine = a_machine_with(State.DEAD)
    machine.apply(act(Action.RETRY, 1))
    machine.apply(fetch(claim=2), fail(1, ask=7, token=2, error="boom"))
    assert machine.job(1).state is State.DEAD

    with nothing_changes(machine):
        assert machine.one(act(Action.RETRY, 1)) == [None]


def test_what_somebody_did_to_a_job_meanwhile_is_not_undone_by_the_same_slice() -> None:
    machine = a_machine_with(State.HELD)
    machine.apply(act(Action.APPROVE, 1), Hold(77, job_id(1)))

    with nothing_changes(machine):
        assert machine.one(act(Action.APPROVE, 1)) == [None], "it was approved by this slice, and held by a person"


def test_a_deleted_job_is_counted_by_the_same_slice_and_unknown_to_the_next() -> None:
    machine = a_machine_with(State.PENDING)
    machine.apply(act(Action.DELETE, 1))

    assert machine.one(act(Action.DELETE, 1)) == [None]
    [refused] = machine.one(act(Action.DELETE, 1, step=2))
    assert refused.code == "JOB_NOT_FOUND"


def test_the_memory_of_a_slice_survives_a_crash() -> None:
    machine = a_machine_with(State.PENDING)
    machine.apply(act(Action.DELETE, 1))
    machine.flush()
    machine.restart()

    assert machine.one(act(Action.DELETE, 1)) == [None]


def test_parts_of_one_slice_are_remembered_together_and_the_next_slice_takes_their_place() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3))
    machine.apply(act(Action.HOLD, 1), act(Action.HOLD, 2))
    assert find_memo(machine.tables, BULK).done == [job_id(1), job_id(2)]

    machine.apply(act(Action.HOLD, 3, step=2))

    assert find_memo(machine.tables, BULK).done == [job_id(3)]


def test_a_slice_that_has_been_followed_by_another_is_refused_whole() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2))
    machine.apply(act(Action.HOLD, 1, step=2))

    with nothing_changes(machine):
        assert machine.one(act(Action.HOLD, 2, step=1)).code == "LEASE_LOST"


def test_without_the_memory_of_the_slice_a_job_still_knows_its_newest_action() -> None:
    machine = a_machine_with(State.DEAD)
    machine.apply(act(Action.RETRY, 1))
    machine.apply(fetch(claim=2), fail(1, ask=7, token=2, error="boom"))
    machine.apply(ring(), at=NOW + KEPT_MS * 1_000_000)
    assert find_memo(machine.tables, BULK) is None

    assert machine.one(act(Action.RETRY, 1)) == [None]
    assert machine.job(1).state is State.DEAD


def test_the_memory_is_forgotten_so_long_after_the_newest_slice() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2))
    machine.apply(act(Action.HOLD, 1))
    machine.apply(act(Action.HOLD, 2, step=2), at=NOW + 40 * SECOND)

    machine.apply(ring(), at=NOW + 60 * SECOND)
    assert find_memo(machine.tables, BULK) is not None
    machine.apply(ring(), at=NOW + 100 * SECOND)
    assert find_memo(machine.tables, BULK) is None


def test_a_job_that_matches_no_more_is_left_alone() -> None:
    machine = a_machine_with(State.ACTIVE)

    with nothing_changes(machine):
        [state] = machine.one(act(Action.DELETE, 1, only_states=(State.DEAD, State.COMPLETED)))
        [queue] = machine.one(act(Action.DELETE, 1, only_queue="elsewhere"))

    assert (state.code, queue.code) == ("WRONG_STATE", "WRONG_STATE")
    assert "is now active" in state.message and "now in queue mail" in queue.message
    assert machine.one(act(Action.DELETE, 1, only_states=(State.ACTIVE,), only_queue="mail")) == [None]


def test_large_jobs_are_taken_as_far_as_an_entry_holds_them_and_the_rest_the_next_time() -> None:
    machine = Machine()
    payload = b'"' + b"x" * (CLAIMED_BYTES_MAX // 2) + b'"'
    machine.apply(enqueue(1, 2, 3, payload=payload))

    outcomes = machine.one(act(Action.HOLD, 1, 2, 3))

    assert outcomes[:2] == [None, None]
    assert outcomes[2].code == "OVERLOADED"
    assert machine.one(act(Action.HOLD, 3)) == [None]
    assert [job.state for job in machine.jobs()] == [State.HELD] * 3


def test_an_active_job_gets_the_grace_and_the_others_are_cancelled_at_once() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch())

    assert machine.one(act(Action.CANCEL, 1, 2, grace_ms=5_000)) == [None, None]

    assert machine.job(1).extras.cancel_at == NOW + 5 * SECOND
    assert (machine.job(1).state, machine.job(2).state) == (State.ACTIVE, State.CANCELLED)


def test_what_follows_from_the_end_of_a_job_is_drawn_before_the_next_job() -> None:
    """The second is lost with the first, in the same operation."""
    machine = Machine()
    machine.apply(enqueue(1))
    machine.apply(enqueue(2, extras=JobExtras(waits_for=(job_id(1),))))

    first, second = machine.one(act(Action.CANCEL, 1, 2))

    assert first is None
    assert second.code == "WRONG_STATE"
    assert machine.job(2).state is State.DEAD
    machine.check()


def test_a_move_to_another_shard_leads_on_whoever_asks_later() -> None:
    here = shard_of_queue("mail", 2)
    source, target = Machine(here, 2), Machine(1 - here, 2)
    queue = next(name for name in map("q{}".format, range(9)) if shard_of_queue(name, 2) != here)
    source.apply(enqueue(1, 2), cancel(2, ask=5))
    move = ActOnJobs(BULK, 1, Order(Action.MOVE, queue), [job_id(1), job_id(2)], KEPT_MS)

    assert source.one(move) == [None, None]
    first, raws = source.tables.errands.waiting(1 - here, 10, 10**6)
    source.apply(Confirm(1 - here, target.one(Deliver(here, first, raws))))

    assert source.one(move) == [None, None], "the slice again"
    assert {outcome.code for outcome in source.one(act(Action.HOLD, 1, 2, bulk="bulk_other"))} == {"JOB_MOVED"}
    assert [job.queue for job in target.jobs()] == [queue, queue]
    assert target.one(act(Action.DELETE, 1, 2, bulk="bulk_other")) == [None, None]


@pytest.mark.parametrize("resets", [False, True])
def test_a_move_resets_attempts_and_priority_on_request(resets: bool) -> None:
    machine = Machine()
    machine.apply(enqueue(1, priority=Priority.HIGH, max_retries=1), fetch(), fail(1, token=1))
    before = machine.job(1)
    assert (before.attempt, before.priority) == (1, Priority.HIGH)
    order = Order(Action.MOVE, "other", resets_attempts=resets, resets_priority=resets)

    assert machine.one(ActOnJobs(BULK, 1, order, [job_id(1)], KEPT_MS)) == [None]

    moved = machine.job(1)
    assert moved.queue == "other"
    assert (moved.attempt, moved.priority) == ((0, Priority.NORMAL) if resets else (1, Priority.HIGH))


def test_an_ack_of_a_job_that_was_held_by_it_is_refused() -> None:
    machine = a_machine_with(State.ACTIVE)
    machine.apply(act(Action.HOLD, 1))

    [refused] = machine.one(ack(1, ask=7, token=1))

    assert refused.code == "LEASE_LOST"


@pytest.mark.parametrize(
    ("queue", "bulk", "scope", "is_done"),
    [
        ("mail", BULK, (), True),
        ("mail", BULK, ("m*",), True),
        ("mail", BULK, ("s*",), False),
        ("mail", f"{BULK}_acme", (), False),
        ("acme|mail", f"{BULK}_acme", (), True),
        ("acme|mail", f"{BULK}_acme", ("m*",), True),
        ("acme|mail", f"{BULK}_acme", ("s*",), False),
        ("acme|mail", f"{BULK}_beta", (), False),
        ("acme|mail", BULK, (), False),
    ],
)
def test_a_job_out_of_reach_is_refused_like_one_that_does_not_exist(
    queue: str, bulk: str, scope: tuple[str, ...], is_done: bool
) -> None:
    """The gateway finds only jobs in reach; by the time the shard acts, one of them may have moved."""
    machine = Machine()
    machine.apply(enqueue(1, queue=queue))

    unknown, outcome = machine.one(act(Action.CANCEL, 2, 1, bulk=bulk, scope=scope))

    if is_done:
        assert outcome is None
    else:
        assert (outcome.code, outcome.message) == (unknown.code, unknown.message.replace(job_id(2), job_id(1)))
        assert machine.job(1).state is State.PENDING
