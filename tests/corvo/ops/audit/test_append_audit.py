"""AppendAudit: numbered, chained, once for each request, and the same on every replica."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.audit import decode_record, stamped
from corvo.model.audit_chain import GENESIS, Anchor, link
from corvo.model.errors import Refused
from corvo.model.limits import AUDIT_ASKS_REMEMBERED, AUDIT_RECORD_BYTES_MAX
from corvo.model.timestamps import to_rfc3339
from corvo.ops.audit.append_audit import AppendAudit
from corvo.state import keys
from corvo.wire import decode_ask, encode
from tests.support.audit import append
from tests.support.builders import NOW, SECOND
from tests.support.machine import Machine, nothing_changes


def test_records_are_numbered_stamped_and_chained() -> None:
    machine = Machine()

    assert machine.apply(append(1, path="/a"), append(2, path="/b")) == [1, 2]
    assert machine.one(append(3, path="/c"), at=NOW + SECOND) == 3

    log = machine.tables.audit_log
    first, second, third = (log.entry(seq) for seq in (1, 2, 3))
    assert first.document == stamped(1, to_rfc3339(NOW), append(1, path="/a").document)
    assert third.document == stamped(3, to_rfc3339(NOW + SECOND), append(3, path="/c").document)
    assert first.hash == link(GENESIS, first.document)
    assert second.hash == link(first.hash, second.document)
    assert log.last == Anchor(3, link(second.hash, third.document))
    assert log.first == Anchor(0, GENESIS)


def test_a_repeated_request_adds_nothing_and_gets_the_same_number() -> None:
    machine = Machine()
    machine.one(append(1, path="/a"))
    machine.one(append(2, path="/b"))

    with nothing_changes(machine):
        assert machine.one(append(1, path="/a")) == 1
    machine.flush()
    machine.restart()
    with nothing_changes(machine):
        assert machine.one(append(1, path="/a")) == 1
    assert len(machine.tables.audit_log) == 2


def test_the_mirror_is_told() -> None:
    machine = Machine()
    machine.one(append(1))

    assert set(machine.changes.records) == {keys.audit(1)}


@pytest.mark.parametrize("document", [b"", b"{}", b'{"kind":"intent"', b'{"seq":9,"kind":"intent"}'])
def test_what_is_no_record_is_refused(document: bytes) -> None:
    machine = Machine()

    with nothing_changes(machine):
        refused = machine.one(AppendAudit(1, document))
    assert isinstance(refused, Refused)
    assert refused.code == "BAD_REQUEST"


def test_a_record_that_is_too_long_does_not_reach_the_log() -> None:
    raw = encode(AppendAudit(1, b"x" * (AUDIT_RECORD_BYTES_MAX + 1)))

    with pytest.raises(ValueError, match="length"):
        decode_ask(raw)


@given(st.lists(st.tuples(st.integers(1, 12), st.booleans(), st.booleans()), max_size=30))
def test_a_replica_that_restarts_has_the_same_log(steps: list[tuple[int, bool, bool]]) -> None:
    """With and without its newest state on disk."""
    steady, shaken = Machine(), Machine()
    for ask_id, is_flushed, is_restarted in steps:
        assert steady.one(append(ask_id)) == shaken.one(append(ask_id))
        if is_flushed:
            shaken.flush()
        if is_restarted:
            shaken.restart()

    assert steady.state() == shaken.state()
    assert steady.tables.audit_log._asks == shaken.tables.audit_log._asks
    numbers = [
        decode_record(steady.tables.audit_log.entry(n + 1).document).seq for n in range(len(steady.tables.audit_log))
    ]
    assert numbers == list(range(1, len({ask_id for ask_id, _, _ in steps}) + 1))


def test_only_the_newest_requests_are_remembered() -> None:
    machine = Machine()
    machine.apply(*(append(number) for number in range(AUDIT_ASKS_REMEMBERED + 1)))
    machine.flush()
    asks = dict(machine.tables.audit_log._asks)
    machine.restart()

    assert len(asks) == AUDIT_ASKS_REMEMBERED
    assert machine.tables.audit_log._asks == asks
    assert machine.one(append(0)) == AUDIT_ASKS_REMEMBERED + 2, "too long ago to be known"
    assert machine.one(append(AUDIT_ASKS_REMEMBERED)) == AUDIT_ASKS_REMEMBERED + 1
