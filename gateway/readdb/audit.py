"""The audit log in the read database: a row for each record, for lists. The log itself is in the state of shard 0.

A change has two records, an intent and an outcome. The seed's table `audit_logs`, with one row for each request, is a
view that joins them (`views.py`). `document` is the whole record, as it was chained.
"""

from typing import Any

import msgspec
import sqlalchemy as sa

from corvo.model.audit import decode_record
from corvo.queries.audit_logs import AuditMetadata
from corvo.state.audit_log import AuditEntry
from gateway.readdb.seed_tables import INTEGER, integer, metadata, text, text_or_null

audit_records = sa.Table(
    "audit_records",
    metadata,
    sa.Column("id", INTEGER, primary_key=True, autoincrement=False),  # the record's number
    integer("shard"),
    text("kind"),  # intent, outcome, denied, read
    integer("intent"),  # of an outcome: the record of its intent; else 0
    text("namespace"),
    text("principal"),
    text("role"),
    text("method"),
    text("path"),
    integer("status_code"),  # 0: not known
    text("code"),
    text_or_null("metadata"),  # JSON: duration_ms, query
    text("created_at"),
    text("document"),
)
AUDIT_COLUMNS = tuple(audit_records.c.keys())


def _requests(name: str, *columns: str) -> sa.Index:
    """An index of the rows that lists show, in the order of lists."""
    is_request = sa.text("intent = 0")
    indexed = [audit_records.c[column] for column in (*columns, "created_at", "id")]
    return sa.Index(name, *indexed, sqlite_where=is_request, postgresql_where=is_request)


AUDIT_BY_TIME = _requests("idx_audit_time")
AUDIT_BY_NAMESPACE = _requests("idx_audit_namespace", "namespace")
AUDIT_BY_PRINCIPAL = _requests("idx_audit_principal", "principal")
_is_outcome = sa.text("intent > 0")
sa.Index("idx_audit_outcome", audit_records.c.intent, sqlite_where=_is_outcome, postgresql_where=_is_outcome)

_to_json = msgspec.json.Encoder().encode


def audit_row(shard: int, entry: AuditEntry) -> tuple[Any, ...]:
    """AUDIT_COLUMNS."""
    record = decode_record(entry.document)
    has_duration = record.kind in ("outcome", "read")
    return (
        entry.seq,
        shard,
        record.kind,
        record.intent,
        record.namespace,
        record.principal,
        record.role,
        record.method,
        record.path,
        record.status,
        record.code,
        _to_json(AuditMetadata(record.duration_ms if has_duration else None, record.query)).decode(),
        record.at,
        entry.document.decode(),
    )
