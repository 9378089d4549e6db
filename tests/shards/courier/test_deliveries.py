"""The leader's courier: one delivery at a time for each shard, patience, pauses, and one confirmation for each round.

No socket, no clock: deliveries come out, answers go in, and the two machines between which it runs are real.
"""

from pathlib import Path

import pytest

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.job_extras import Chain, ChainStep, JobExtras, Outcome
from corvo.model.limits import ERRANDS_PER_DELIVERY
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.errands.member_ended import MemberEnded
from shards.courier.deliveries import PATIENCE_MS, PAUSE_NS, Courier
from tests.shards.rig import Rig
from tests.support.builders import MS, NOW, cancel, enqueue, new_job
from tests.support.machine import Machine
from tests.support.shards import queue_on

START = 5_000 * MS  # of the monotonic clock
PATIENCE_NS = PATIENCE_MS * MS


class Office:
    """The shard that gives errands, and its courier."""

    def __init__(self, shard_count: int = 3) -> None:
        self.machine = Machine(0, shard_count)
        self.courier = Courier(self.machine.tables.errands)

    def give(self, target: int, count: int = 1) -> None:
        tables = self.machine.tables
        tables.begin(tables.applied.index + 1, 1, NOW)
        for _ in range(count):
            tables.errands.send(target, MemberEnded("s01_batch_" + "0" * 26, Outcome.COMPLETED))
        tables.seal()

    def apply(self, *operations: Operation) -> None:
        tables = self.machine.tables
        tables.begin(tables.applied.index + 1, 1, NOW)
        for operation in operations:
            operation.apply(tables)
        tables.seal()

    def set_out(self, at: int = START) -> list[tuple[int, Deliver]]:
        return self.courier.set_out(at)


def test_without_errands_nobody_sets_out_and_nobody_waits() -> None:
    office = Office()

    assert office.set_out() == []
    assert office.courier.next_ns() is None
    assert office.courier.confirmations() == []


def test_errands_are_carried_together_in_order_with_their_numbers_and_their_giver() -> None:
    office = Office()
    office.give(1, 3)

    [(target, deliver)] = office.set_out()

    assert target == 1
    assert (deliver.source, deliver.first, len(deliver.errands)) == (0, 1, 3)


def test_each_shard_has_a_round_of_its_own() -> None:
    office = Office()
    office.give(1)
    office.give(2)

    assert sorted(target for target, _ in office.set_out()) == [1, 2]
    assert office.set_out() == []


def test_while_a_delivery_is_under_way_nothing_more_is_carried_there() -> None:
    office = Office()
    office.give(1)
    office.set_out()
    office.give(1)

    assert office.set_out(START + PATIENCE_NS - 1) == []
    assert office.courier.next_ns() == START + PATIENCE_NS


def test_without_an_answer_all_of_it_is_carried_again_when_patience_ends() -> None:
    office = Office()
    office.give(1)
    office.set_out()
    office.give(1)

    [(_, deliver)] = office.set_out(START + PATIENCE_NS)

    assert (deliver.first, len(deliver.errands)) == (1, 2)


def test_what_is_done_is_confirmed_until_the_log_knows_it_and_carried_no_more() -> None:
    office = Office()
    office.give(1, 2)
    office.set_out()

    office.courier.come_back(1, 2, START)

    assert office.courier.confirmations() == [Confirm(1, 2)]
    assert office.set_out() == []
    office.apply(*office.courier.confirmations())
    assert office.courier.confirmations() == []
    assert office.set_out() == []
    assert office.courier.next_ns() is None


def test_the_next_errands_wait_until_the_confirmation_is_applied() -> None:
    office = Office()
    office.give(1)
    office.set_out()
    office.courier.come_back(1, 1, START)
    office.give(1)
    assert office.set_out() == []

    office.apply(*office.courier.confirmations())

    [(_, deliver)] = office.set_out()
    assert (deliver.first, len(deliver.errands)) == (2, 1)


def test_a_long_outbox_is_carried_in_parts() -> None:
    office = Office()
    office.give(1, ERRANDS_PER_DELIVERY + 1)

    office.set_out()
    office.courier.come_back(1, ERRANDS_PER_DELIVERY, START)
    office.apply(*office.courier.confirmations())

    [(_, deliver)] = office.set_out()
    assert (deliver.first, len(deliver.errands)) == (ERRANDS_PER_DELIVERY + 1, 1)


def test_a_refusal_is_followed_by_a_pause_and_then_by_the_same_errands() -> None:
    office = Office()
    office.give(1)
    office.set_out()

    office.courier.come_back(1, Refusal("NO_LEADER", "nobody leads"), START)

    assert office.courier.confirmations() == []
    assert office.courier.next_ns() == START + PAUSE_NS
    assert office.set_out(START + PAUSE_NS - 1) == []
    [(_, deliver)] = office.set_out(START + PAUSE_NS)
    assert deliver.first == 1


def test_what_cannot_be_sent_is_sent_after_a_pause() -> None:
    office = Office()
    office.give(1)
    office.set_out()

    office.courier.turn_back(1, START)

    assert office.set_out(START + PAUSE_NS - 1) == []
    assert len(office.set_out(START + PAUSE_NS)) == 1


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    office = Office()
    office.give(1)
    office.set_out()
    office.courier.turn_back(1, START)

    office.courier.come_back(1, 1, START)
    office.courier.come_back(2, 1, START)

    assert office.courier.confirmations() == []
    assert len(office.set_out(START + PAUSE_NS)) == 1


def test_a_target_that_has_done_less_than_was_carried_gets_the_rest() -> None:
    """Its leader was replaced in the middle: what the answer names is what counts."""
    office = Office()
    office.give(1, 3)
    office.set_out()

    office.courier.come_back(1, 1, START)
    office.apply(*office.courier.confirmations())

    [(_, deliver)] = office.set_out()
    assert (deliver.first, len(deliver.errands)) == (2, 2)


def test_a_target_that_has_done_nothing_of_it_gets_it_again_after_a_pause() -> None:
    """Otherwise two shards that have lost each other's count would fill their logs as fast as they can write."""
    office = Office()
    office.give(1)
    office.set_out()

    office.courier.come_back(1, 0, START)

    assert office.courier.confirmations() == []
    assert office.set_out() == []
    assert len(office.set_out(START + PAUSE_NS)) == 1


def test_a_courier_that_rests_has_forgotten_everything_and_the_outbox_has_not() -> None:
    office = Office()
    office.give(1)
    office.give(2)
    office.set_out()
    office.courier.come_back(2, 1, START)

    office.courier.rest()

    assert office.courier.confirmations() == []
    assert office.courier.next_ns() is None
    office.courier.come_back(1, 1, START)
    assert office.courier.confirmations() == [], "an answer to a call of before"
    assert sorted(target for target, _ in office.set_out()) == [1, 2]


def test_a_round_whose_errands_were_confirmed_by_another_road_keeps_nobody_awake() -> None:
    """A confirmation of an earlier leadership is applied while a new delivery is under way, whose answer gets lost."""
    office = Office()
    office.give(1)
    office.set_out()

    office.apply(Confirm(1, 1))

    assert office.set_out(START + 2 * PATIENCE_NS) == []
    assert office.courier.next_ns() is None


def test_a_target_that_remembers_more_than_was_ever_given_is_not_confirmed_for_ever() -> None:
    """The giver's state was lost and restored from an older copy; the numbers in between are gone."""
    office = Office()
    office.give(1)
    office.set_out()

    office.courier.come_back(1, 7, START)
    office.apply(*office.courier.confirmations())

    assert office.courier.confirmations() == []


# Within a replica


def giving_rig(path: Path) -> Rig:
    """Shard 0 of two, whose log holds an errand for the other."""
    rig = Rig(path, shard_count=2)
    chain = Chain("chain", 0, (ChainStep("mail"),), on_failure=ChainStep(queue_on(1, 2)))
    rig.ask(enqueue(new_job(1, extras=JobExtras(chain=chain))), cancel(1))
    return rig


def test_a_replica_writes_one_confirmation_for_an_answer(tmp_path: Path) -> None:
    rig = giving_rig(tmp_path / "db")
    courier = rig.replica.courier
    [(target, _)] = courier.set_out(rig.monotonic_ns)
    before = rig.commit_index

    courier.come_back(target, 1, rig.monotonic_ns)
    for _ in range(5):
        rig.turn()

    assert rig.commit_index == before + 1
    assert rig.replica.tables.errands.targets() == []
    assert courier.set_out(rig.monotonic_ns) == []
    rig.kill()


def test_a_replica_sleeps_until_patience_ends_and_no_longer(tmp_path: Path) -> None:
    rig = giving_rig(tmp_path / "db")
    rig.replica.courier.set_out(rig.monotonic_ns)

    assert rig.sleep_through(PATIENCE_NS - 1) < 100
    assert rig.replica.courier.set_out(rig.monotonic_ns) == []
    rig.advance(1)
    assert len(rig.replica.courier.set_out(rig.monotonic_ns)) == 1
    rig.kill()


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_leader_that_starts_anew_finds_everything_in_the_outbox(tmp_path: Path, is_answered: bool) -> None:
    rig = giving_rig(tmp_path / "db")
    [(target, delivery)] = rig.replica.courier.set_out(rig.monotonic_ns)
    if is_answered:  # and dies before its log knows it
        rig.replica.courier.come_back(target, 1, rig.monotonic_ns)

    rig.restart()

    [(again, repeated)] = rig.replica.courier.set_out(rig.monotonic_ns)
    assert (again, repeated) == (target, delivery)
    rig.kill()
