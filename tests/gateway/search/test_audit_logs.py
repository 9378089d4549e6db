"""Lists of the audit log: a row for each request, its outcome beside it, and nobody sees another's namespace."""

import asyncio

import msgspec
import pytest

from corvo.model.access import ANONYMOUS, built_in
from corvo.model.errors import Refusal
from corvo.model.timestamps import to_rfc3339
from corvo.queries.audit_logs import AuditLogsQuery
from corvo.state import keys
from corvo.state.audit_log import encode
from gateway.search import audit_logs
from gateway.search.audit_logs import _conditions, _counted, _page, visible_namespace
from tests.support.audit import an_audit_entry
from tests.support.builders import NOW, SECOND


def write(written, *entries):
    written.records(*[(keys.audit(entry.seq), encode(entry)) for entry in entries])


def intent(seq, **fields):
    defaults = {
        "principal": "ada",
        "principal_kind": "person",
        "role": "admin",
        "method": "POST",
        "path": "/api/v1/queues/mail/pause",
        "route": "pause_queue",
        "target": {"queue": "mail"},
        "before": {"paused": False},
    }
    return an_audit_entry(seq, NOW + seq * SECOND, **defaults | fields)


def outcome(seq, of, status=200, **fields):
    return an_audit_entry(
        seq, NOW + seq * SECOND, **{"kind": "outcome", "intent": of, "status": status, "duration_ms": 1.5} | fields
    )


@pytest.fixture
def find(read_db):
    return lambda namespace="", **query: asyncio.run(audit_logs.answer(read_db, AuditLogsQuery(**query), namespace))


def ids(answer):
    return [log.id for log in answer.audit_logs]


def test_a_request_is_one_row_with_its_outcome(written, find):
    write(written, intent(1), outcome(2, of=1, after={"paused": True}, made={"id": "x"}))

    answer = find()

    (log,) = answer.audit_logs
    assert (answer.total, answer.limit, answer.offset, answer.total_is_exact, answer.has_more) == (
        1,
        100,
        0,
        True,
        False,
    )
    assert (log.id, log.principal, log.role, log.method, log.path) == (
        1,
        "ada",
        "admin",
        "POST",
        "/api/v1/queues/mail/pause",
    )
    assert (log.status_code, log.outcome, log.metadata.duration_ms, log.created_at) == (
        200,
        "ok",
        1.5,
        to_rfc3339(NOW + SECOND),
    )
    assert (log.before, log.after, log.made, log.target) == (
        {"paused": False},
        {"paused": True},
        {"id": "x"},
        {"queue": "mail"},
    )


def test_outcomes(written, find):
    write(
        written,
        *(intent(1), outcome(2, of=1)),
        *(intent(3), outcome(4, of=3, status=409, code="WRONG_STATE")),
        intent(5),
        *(intent(6), outcome(7, of=6, status=503, code="OUTCOME_UNKNOWN")),
        *(intent(8), outcome(9, of=8, status=499)),
        an_audit_entry(10, kind="denied", principal="eve", status=403, code="FORBIDDEN", suppressed=3),
        an_audit_entry(11, kind="read", principal="ada", status=200, duration_ms=2.5),
    )

    found = {log.id: (log.outcome, log.status_code) for log in find().audit_logs}

    assert found == {
        1: ("ok", 200),
        3: ("refused", 409),
        5: ("unknown", 0),
        6: ("unknown", 503),
        8: ("unknown", 499),
        10: ("denied", 403),
        11: ("ok", 200),
    }
    for name in ("ok", "refused", "unknown", "denied"):
        wanted = {number for number, (said, _) in found.items() if said == name}
        answer = find(outcome=name)
        assert (set(ids(answer)), answer.total) == (wanted, len(wanted))


def test_filters(written, find):
    write(
        written,
        intent(1, namespace="acme"),
        intent(2, principal="bob", method="DELETE", path="/api/v1/Queues/x"),
        intent(3, path="/api/v1/queues/100%_a"),
        intent(4, path="/api/v1/jobs/x"),
    )

    assert ids(find()) == [4, 3, 2, 1]
    assert ids(find(namespace="acme")) == [1]
    assert ids(find(principal="bob")) == [2]
    assert ids(find(principal="ada", namespace="default")) == [4, 3]
    assert ids(find(method="delete")) == [2]
    assert ids(find(path_prefix="/api/v1/queues/")) == [3, 1]
    assert ids(find(path_prefix="/api/v1/queues/100%_a")) == [3]
    assert ids(find(path_prefix="/api/v1/queues/1__%_a")) == []
    assert ids(find(since=to_rfc3339(NOW + 2 * SECOND), until=to_rfc3339(NOW + 4 * SECOND))) == [3, 2]
    assert ids(find(before_id=3)) == [2, 1]
    assert ids(find(principal="' OR 1=1 --")) == []


def test_pages_by_offset_and_by_id(written, find):
    write(written, *(intent(number) for number in range(1, 11)))

    first = find(limit=4)
    assert (ids(first), first.total, first.has_more) == ([10, 9, 8, 7], 10, True)
    assert ids(find(limit=4, offset=4)) == [6, 5, 4, 3]
    last = find(limit=4, offset=8)
    assert (ids(last), last.has_more) == ([2, 1], False)
    assert ids(find(limit=4, before_id=7)) == [6, 5, 4, 3]


def test_removed_records_leave_the_list(written, find):
    write(written, intent(1), outcome(2, of=1), intent(3))
    written.records((keys.audit(1), None), (keys.audit(2), None))

    assert ids(find()) == [3]


@pytest.mark.parametrize("field", ["since", "until"])
def test_a_bad_time_is_named(find, field):
    with pytest.raises(Refusal) as refused:
        find(**{field: "yesterday"})
    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", field)


def test_the_seed_s_view_has_a_row_for_each_request(written):
    write(written, intent(1, query="a=1"), outcome(2, of=1, query="a=1"), intent(3))

    assert written.place.columns("audit_logs") == (
        ["id", "namespace", "principal", "role", "method", "path", "status_code", "metadata", "created_at"]
    )
    assert written.place.read("SELECT id, status_code, metadata FROM audit_logs ORDER BY id") == [
        (1, 200, '{"duration_ms":1.5,"query":"a=1"}'),
        (3, 0, "{}"),
    ]


@pytest.mark.parametrize("query", [{}, {"principal": "ada"}, {"outcome": "ok"}, {"since": "2026-01-01"}])
@pytest.mark.parametrize("namespace", ["", "acme"])
def test_a_page_is_read_along_an_index_without_sorting(explain, query, namespace):
    asked = AuditLogsQuery(**query)
    conditions = _conditions(asked, namespace)

    for statement in (_page(asked, namespace, conditions), _counted(asked, namespace, conditions)):
        _, steps = explain(statement)
        assert not any("TEMP B-TREE" in step for step in steps), steps
        assert not any(step.startswith("SCAN outcome") for step in steps), steps


TENANT = msgspec.structs.replace(built_in("t", "key", "admin"), namespace="acme", home="acme")
CHOSEN = msgspec.structs.replace(ANONYMOUS, namespace="acme")
SCOPED = msgspec.structs.replace(ANONYMOUS, queue_scope=("a.*",))


@pytest.mark.parametrize(
    ("principal", "asked", "seen"),
    [
        (ANONYMOUS, "", ""),
        (ANONYMOUS, "acme", "acme"),
        (CHOSEN, "", "acme"),
        (CHOSEN, "other", "other"),
        (TENANT, "", "acme"),
        (TENANT, "acme", "acme"),
        (TENANT, "default", None),
        (TENANT, "other", None),
        (SCOPED, "", "default"),
        (SCOPED, "acme", None),
    ],
)
def test_who_sees_which_namespace(principal, asked, seen):
    if seen is None:
        with pytest.raises(Refusal) as refused:
            visible_namespace(principal, asked)
        assert refused.value.code == "FORBIDDEN"
    else:
        assert visible_namespace(principal, asked) == seen
