"""ClaimBulk: exactly one gateway works on an operation, and another one when it has fallen silent."""

from corvo.rules.bulk import Status
from tests.corvo.ops.bulk.records import LEASE_MS, a_tally, advance, begin, bulk_id, claim, look
from tests.support.builders import NOW, SECOND
from tests.support.machine import Machine, nothing_changes

LEASE_OVER = NOW + LEASE_MS * 1_000_000


def test_the_oldest_that_nobody_has_is_claimed() -> None:
    machine = Machine()
    machine.apply(begin(2), begin(1))

    first, second, none = machine.apply(claim(1), claim(2), claim(3))

    assert (first.id, second.id, none) == (bulk_id(1), bulk_id(2), None)
    assert (first.status, first.claim, first.node_id, first.gateway) == (Status.RUNNING, 1, "node-1", 11)
    assert (first.started_at, first.claimed_at, first.lease_ends_at) == (NOW, NOW, LEASE_OVER)


def test_without_any_there_is_nothing_to_claim() -> None:
    machine = Machine()

    with nothing_changes(machine):
        assert machine.one(claim()) is None


def test_the_same_claim_again_gets_the_same_operation() -> None:
    machine = Machine()
    machine.apply(begin(1), begin(2))
    first = machine.one(claim(7))

    with nothing_changes(machine):
        assert machine.one(claim(7)) == first


def test_what_another_node_works_on_is_left_to_it_while_its_lease_lasts() -> None:
    machine = Machine()
    machine.apply(begin(), claim(1, "node-1"))

    with nothing_changes(machine):
        assert machine.one(claim(2, "node-2"), at=LEASE_OVER - 1) is None
        assert machine.one(claim(3, "node-1"), at=LEASE_OVER - 1) is None, "nor does the same process take it twice"
    taken = machine.one(claim(4, "node-2"), at=LEASE_OVER)

    assert (taken.claim, taken.node_id) == (4, "node-2")


def test_a_report_renews_the_lease() -> None:
    machine = Machine()
    machine.apply(begin(), claim(1))
    machine.apply(advance(1, "a"), at=NOW + 20 * SECOND)

    assert machine.one(claim(2, "node-2"), at=LEASE_OVER) is None
    assert machine.one(claim(2, "node-2"), at=LEASE_OVER + 20 * SECOND).claim == 2


def test_a_gateway_that_was_started_again_takes_up_at_once_what_its_former_self_had() -> None:
    machine = Machine()
    machine.apply(begin(), claim(1, gateway=11))
    machine.apply(advance(1, "a", "b"), at=NOW + SECOND)

    taken = machine.one(claim(2, gateway=12))

    assert (taken.claim, taken.slice, taken.cursor, taken.step) == (2, ["a", "b"], "behind 1", 1)


def test_who_takes_over_goes_on_with_the_counts_and_measures_its_own_rate() -> None:
    machine = Machine()
    machine.apply(begin(), claim(1), advance(1, "a"))
    machine.apply(advance(2, "b", tally=a_tally(1)), at=NOW + SECOND)

    taken = machine.one(claim(2, gateway=12), at=NOW + 2 * SECOND)

    assert (taken.tally.affected, taken.claimed_processed) == (1, 1)
    assert (taken.started_at, taken.claimed_at) == (NOW, NOW + 2 * SECOND)


def test_a_claim_survives_a_crash_of_the_shard() -> None:
    machine = Machine()
    machine.apply(begin(), claim(1))
    machine.flush()
    machine.restart()

    assert machine.one(claim(2, "node-2")) is None
    assert look(machine).claim == 1
