"""Records of the audit log with defaults, so that a test writes only what matters to it."""

from typing import Any

from corvo.model.audit import AuditRecord, stamped, to_document
from corvo.model.audit_chain import GENESIS, link
from corvo.model.timestamps import to_rfc3339
from corvo.ops.audit.append_audit import AppendAudit
from corvo.state.audit_log import AuditEntry
from tests.support.builders import NOW


def a_record(**fields: Any) -> AuditRecord:
    return AuditRecord(**{"kind": "intent", "namespace": "default"} | fields)


def append(ask_id: int, **fields: Any) -> AppendAudit:
    return AppendAudit(ask_id, to_document(a_record(**fields)))


def an_audit_entry(seq: int, at: int = NOW, **fields: Any) -> AuditEntry:
    """Not in a chain with others."""
    document = stamped(seq, to_rfc3339(at), to_document(a_record(**fields)))
    return AuditEntry(seq, at, seq, link(GENESIS, document), document)
