"""KeepAudit: old records go in small slices, and the chain of the rest still verifies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.audit_chain import Anchor, ChainCheck, end_line, head_line, record_line
from corvo.model.limits import (
    AUDIT_RECORDS_DEFAULT,
    AUDIT_REMOVED_AT_ONCE,
    AUDIT_RETENTION_MS_DEFAULT,
)
from corvo.ops.upkeep.keep_audit import KeepAudit
from corvo.ops.upkeep.ring import Ring
from corvo.state import keys
from corvo.state.audit_log import AuditKept
from shards.upkeep import UpkeepSettings, next_upkeep_ns, upkeep_due
from tests.support.audit import append
from tests.support.builders import MS, NOW, SECOND
from tests.support.machine import Machine

HOUR_MS = 3_600_000
MANY = 1_000_000


def verified(machine: Machine) -> ChainCheck:
    """The whole log, as an export has it."""
    log = machine.tables.audit_log
    check = ChainCheck(log.first)
    check.take(head_line(log.first))
    previous = log.first.hash
    for entry in log.after(0, MANY, MANY)[1]:
        check.take(record_line(entry.seq, previous, entry.hash, entry.document))
        previous = entry.hash
    check.take(end_line(log.last, len(log)))
    check.finish()
    return check


def ring_at(machine: Machine, at: int) -> None:
    """As a leader does: until nothing is due."""
    while any(isinstance(one, Ring) for one in upkeep_due(machine.tables, at)):
        machine.one(Ring(), at=at)


def test_it_is_kept_and_there_after_a_restart() -> None:
    machine = Machine()
    assert machine.tables.audit_log.kept == AuditKept(AUDIT_RETENTION_MS_DEFAULT, AUDIT_RECORDS_DEFAULT)

    assert machine.apply(KeepAudit(HOUR_MS, 20_000), KeepAudit(HOUR_MS, 20_000)) == [True, False]
    machine.flush()
    machine.restart()

    assert machine.tables.audit_log.kept == AuditKept(HOUR_MS, 20_000)


def test_a_record_is_removed_when_its_time_is_over_and_not_before() -> None:
    machine = Machine()
    machine.apply(KeepAudit(HOUR_MS, MANY), append(1))
    machine.one(append(2), at=NOW + SECOND)
    machine.one(append(3), at=NOW + 2 * SECOND)

    ring_at(machine, NOW + HOUR_MS * MS - 1)
    assert len(machine.tables.audit_log) == 3
    ring_at(machine, NOW + HOUR_MS * MS + SECOND)
    assert machine.tables.audit_log.first.seq == 2
    assert verified(machine).records == 1
    ring_at(machine, NOW + HOUR_MS * MS + 2 * SECOND)
    assert len(machine.tables.audit_log) == 0
    assert verified(machine).records == 0

    machine.one(append(4), at=NOW + HOUR_MS * MS + 3 * SECOND)
    assert verified(machine).last.seq == 4
    ring_at(machine, NOW + 3 * HOUR_MS * MS)
    assert machine.tables.audit_log.first.seq == 4


def test_the_mirror_is_told_of_what_was_removed() -> None:
    machine = Machine()
    machine.apply(KeepAudit(HOUR_MS, MANY), append(1))
    ring_at(machine, NOW + HOUR_MS * MS)

    assert machine.changes.records == {keys.audit(1): None}


def test_many_are_removed_in_slices() -> None:
    machine = Machine()
    machine.apply(*(append(number) for number in range(2 * AUDIT_REMOVED_AT_ONCE + 5)))
    machine.one(KeepAudit(HOUR_MS, MANY), at=NOW + 2 * HOUR_MS * MS)

    machine.one(Ring())
    assert machine.tables.audit_log.first.seq == AUDIT_REMOVED_AT_ONCE
    machine.one(Ring())
    assert machine.tables.audit_log.first.seq == 2 * AUDIT_REMOVED_AT_ONCE
    assert verified(machine).records == 5
    ring_at(machine, machine.now)
    assert len(machine.tables.audit_log) == 0


def test_for_ever_keeps_the_log_until_it_is_too_long() -> None:
    machine = Machine()
    machine.apply(KeepAudit(0, 10), *(append(number) for number in range(15)))
    ring_at(machine, NOW + 10**6 * HOUR_MS * MS // 100)

    assert len(machine.tables.audit_log) == 10
    assert verified(machine).last.seq == 15


def test_a_lower_bound_is_reached_at_once() -> None:
    machine = Machine()
    machine.apply(*(append(number) for number in range(500)))
    machine.one(KeepAudit(0, 100))
    ring_at(machine, machine.now)

    assert len(machine.tables.audit_log) == 100
    assert verified(machine).last.seq == 500


@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "ring", "keep", "flush", "restart"]), st.integers(0, 3 * HOUR_MS)),
        max_size=40,
    )
)
def test_whatever_is_removed_the_rest_verifies_and_every_replica_has_the_same(steps: list[tuple[str, int]]) -> None:
    steady, shaken = Machine(), Machine()
    at = NOW
    for number, (step, ms) in enumerate(steps):
        at += ms * MS
        for machine in (steady, shaken):
            match step:
                case "append":
                    machine.one(append(number), at=at)
                case "ring":
                    machine.one(Ring(), at=at)
                case "keep":
                    machine.one(KeepAudit(HOUR_MS * (number % 3), 3 + number % 5), at=at)
        if step == "flush":
            shaken.flush()
        elif step == "restart":
            shaken.restart()

    assert steady.state() == shaken.state()
    assert steady.tables.audit_log._asks == shaken.tables.audit_log._asks
    verified(steady)


def test_the_leader_of_shard_0_proposes_it_when_its_setting_differs() -> None:
    settings = UpkeepSettings(audit=AuditKept(HOUR_MS, 20_000))
    mine, another = Machine(0, 2), Machine(1, 2)

    assert upkeep_due(mine.tables, NOW, settings) == [KeepAudit(HOUR_MS, 20_000)]
    assert next_upkeep_ns(mine.tables, NOW, settings) == NOW
    assert upkeep_due(another.tables, NOW, settings) == []
    assert next_upkeep_ns(another.tables, NOW, settings) > NOW

    mine.apply(*upkeep_due(mine.tables, NOW, settings))
    assert KeepAudit(HOUR_MS, 20_000) not in upkeep_due(mine.tables, NOW, settings)


@pytest.mark.parametrize("count", [0, 3])
def test_the_last_anchor_can_be_expected(count: int) -> None:
    machine = Machine()
    machine.apply(KeepAudit(0, 2), *(append(number) for number in range(count)))

    assert isinstance(machine.tables.audit_log.last, Anchor)
    verified(machine)
