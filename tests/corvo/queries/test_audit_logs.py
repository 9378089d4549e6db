"""ReadAudit: pages of the log from shard 0, each with the place where it begins."""

import pytest

from corvo.model.audit_chain import GENESIS, Anchor
from corvo.model.errors import Refusal
from corvo.ops.upkeep.keep_audit import KeepAudit
from corvo.queries.audit_logs import ReadAudit
from tests.support.audit import append
from tests.support.machine import Machine


def a_log(count: int, kept: int = 1_000) -> Machine:
    machine = Machine()
    machine.apply(KeepAudit(0, kept), *(append(number) for number in range(count)))
    return machine


def test_pages_follow_one_another() -> None:
    machine = a_log(7)
    first = ReadAudit(0, 3, 10**6).read(machine.tables)
    second = ReadAudit(3, 10, 10**6).read(machine.tables)

    assert (first.start, first.start_hash, [entry.seq for entry in first.entries]) == (0, GENESIS, [1, 2, 3])
    assert (second.start, second.start_hash) == (3, first.entries[-1].hash)
    assert [entry.seq for entry in second.entries] == [4, 5, 6, 7]
    assert (second.last, second.last_hash) == (7, second.entries[-1].hash)


def test_a_page_is_bounded_in_bytes_and_has_at_least_one_record() -> None:
    machine = a_log(4)

    assert [entry.seq for entry in ReadAudit(1, 10, 1).read(machine.tables).entries] == [2]


def test_the_end_is_an_empty_page() -> None:
    page = ReadAudit(4, 10, 10**6).read(a_log(4).tables)

    assert (page.start, page.start_hash, page.entries) == (4, page.last_hash, [])


def test_an_empty_log() -> None:
    page = ReadAudit(0, 10, 10**6).read(Machine().tables)

    assert (page.start, page.start_hash, page.last, page.entries) == (0, GENESIS, 0, [])


def test_what_was_removed_is_skipped_and_its_hash_is_given() -> None:
    machine = a_log(9, kept=4)
    page = ReadAudit(2, 10, 10**6).read(machine.tables)

    assert Anchor(page.start, page.start_hash) == machine.tables.audit_log.first
    assert [entry.seq for entry in page.entries] == [6, 7, 8, 9]


def test_a_place_beyond_the_end_is_refused() -> None:
    with pytest.raises(Refusal, match="the newest record of the audit log is 4"):
        ReadAudit(5, 10, 10**6).read(a_log(4).tables)
