"""Lists the audit log, newest first: one row for each request, with its outcome.

A tenant sees its own namespace. A principal of the namespace `default` without a queue scope sees all, unless it has
chosen one.
"""

from typing import Any

import msgspec
import sqlalchemy as sa

from corvo.model.access import Principal
from corvo.model.audit import UNKNOWN, decode_record
from corvo.model.errors import Refusal, invalid
from corvo.model.namespaces import DEFAULT
from corvo.model.timestamps import parse_rfc3339, to_rfc3339
from corvo.queries.audit_logs import COUNTED_MAX, AuditLogsAnswer, AuditLogsQuery, AuditLogView, AuditMetadata
from gateway.readdb.audit import AUDIT_BY_NAMESPACE, AUDIT_BY_PRINCIPAL, AUDIT_BY_TIME, audit_records
from gateway.search.database import ReadDb, ReadSession
from gateway.search.lag import lag_ms

_request, _outcome = audit_records.alias("request"), audit_records.alias("outcome")
# As literals: the partial indexes have the same conditions, and SQLite must see that.
_IS_REQUEST = _request.c.intent == sa.literal_column("0")
_IS_ITS = sa.and_(_outcome.c.intent == _request.c.id, _outcome.c.intent > sa.literal_column("0"))
_JOINED = _request.outerjoin(_outcome, _IS_ITS)
_STATUS = sa.func.coalesce(_outcome.c.status_code, _request.c.status_code)
_METADATA = sa.func.coalesce(_outcome.c.metadata, _request.c.metadata)
_CODE = sa.func.coalesce(_outcome.c.code, _request.c.code)
_UNCERTAIN_CODES = ("OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED")
_UNCERTAIN_STATUSES = (0, 499)  # no outcome; the client left before there was one
_OUTCOME = sa.case(
    (_request.c.kind == "denied", "denied"),
    (_STATUS.in_(_UNCERTAIN_STATUSES), UNKNOWN),
    (_CODE.in_(_UNCERTAIN_CODES), UNKNOWN),
    (_STATUS < 400, "ok"),
    else_="refused",
)
_decode_metadata = msgspec.json.Decoder(AuditMetadata).decode


def visible_namespace(principal: Principal, asked: str) -> str:
    """The namespace whose records are shown; empty: all."""
    if not principal.is_cluster_wide and asked not in ("", principal.namespace):
        raise Refusal("FORBIDDEN", "this key sees the audit log of its own namespace only")
    if asked:
        return asked
    return "" if principal.is_cluster_wide and principal.namespace == DEFAULT else principal.namespace


async def answer(read_db: ReadDb, query: AuditLogsQuery, namespace: str) -> AuditLogsAnswer:
    """`namespace` is what the principal may see; empty: all."""
    conditions = _conditions(query, namespace)
    page, counted = _page(query, namespace, conditions), _counted(query, namespace, conditions)

    def question(session: ReadSession) -> AuditLogsAnswer:
        rows = session.rows(page)
        ((total,),) = session.rows(counted)
        return AuditLogsAnswer(
            audit_logs=[_view(*row) for row in rows[: query.limit]],
            total=min(total, COUNTED_MAX),
            limit=query.limit,
            offset=query.offset,
            total_is_exact=total <= COUNTED_MAX,
            has_more=len(rows) > query.limit,
            lag_ms=round(lag_ms(session), 3),
        )

    return await read_db.ask(question)


def _page(query: AuditLogsQuery, namespace: str, conditions: list[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    """One row more than the page holds, to learn whether another page follows."""
    statement = sa.select(_request.c.document, _outcome.c.document, _STATUS, _CODE, _OUTCOME, _METADATA)
    return (
        _along(query, namespace, statement.select_from(_JOINED))
        .where(*conditions)
        .order_by(_request.c.created_at.desc(), _request.c.id.desc())
        .limit(query.limit + 1)
        .offset(query.offset)
    )


def _counted(query: AuditLogsQuery, namespace: str, conditions: list[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    """Counting stops at a bound: a page must not read the whole log."""
    source = _JOINED if query.outcome else _request
    found = _along(query, namespace, sa.select(_request.c.id).select_from(source)).where(*conditions)
    return sa.select(sa.func.count()).select_from(found.limit(COUNTED_MAX + 1).subquery())


def _along(query: AuditLogsQuery, namespace: str, statement: sa.Select[Any]) -> sa.Select[Any]:
    index = AUDIT_BY_PRINCIPAL if query.principal else AUDIT_BY_NAMESPACE if namespace else AUDIT_BY_TIME
    return statement.with_hint(_request, f"INDEXED BY {index.name}", "sqlite")


def _conditions(query: AuditLogsQuery, namespace: str) -> list[sa.ColumnElement[bool]]:
    request = _request.c
    found: list[sa.ColumnElement[bool]] = [_IS_REQUEST]
    if namespace:
        found.append(request.namespace == namespace)
    if query.principal:
        found.append(request.principal == query.principal)
    if query.method:
        found.append(request.method == query.method.upper())
    if query.path_prefix:
        # Not LIKE, which ignores case on SQLite.
        found.append(sa.func.substr(request.path, 1, len(query.path_prefix)) == query.path_prefix)
    if query.since:
        found.append(request.created_at >= _moment("since", query.since))
    if query.until:
        found.append(request.created_at < _moment("until", query.until))
    if query.before_id:
        found.append(request.id < query.before_id)
    if query.outcome:
        found.append(sa.literal(query.outcome) == _OUTCOME)
    return found


def _moment(field: str, text: str) -> str:
    try:
        return to_rfc3339(parse_rfc3339(text))
    except ValueError as error:
        raise invalid(field, str(error)) from None


def _view(document: str, reported: str | None, status: int, code: str, outcome: str, metadata: str) -> AuditLogView:
    record = decode_record(document)
    report = record if reported is None else decode_record(reported)
    return AuditLogView(
        id=record.seq,
        namespace=record.namespace,
        principal=record.principal,
        role=record.role,
        method=record.method,
        path=record.path,
        status_code=status,
        metadata=_decode_metadata(metadata),
        created_at=record.at,
        outcome=outcome,
        kind=record.principal_kind,
        key=record.key,
        address=record.address,
        request_id=record.request_id,
        route=record.route,
        code=code,
        target=record.target,
        change=record.change,
        made=report.made,
        before=_settings(record.before),
        after=_settings(report.after),
        suppressed=record.suppressed,
    )


def _settings(settings: Any) -> Any:
    return None if settings is msgspec.UNSET else settings
