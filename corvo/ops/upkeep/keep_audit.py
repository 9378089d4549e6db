"""KeepAudit: how long, and how many, records of the audit log are kept.

The leader of shard 0 proposes it when its settings (`--audit-retention`, `--audit-records`) differ from the state, so
that every replica removes the same records.
"""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.model.job import Count
from corvo.state.audit_log import AuditKept
from corvo.state.tables import Tables


class KeepAudit(Operation, tag=108):
    retention_ms: Count  # 0: for ever
    records_max: Count

    result: ClassVar[Any] = bool

    def apply(self, tables: Tables) -> bool:
        """Whether that is news."""
        kept = AuditKept(self.retention_ms, self.records_max)
        if tables.audit_log.kept == kept:
            return False
        tables.audit_log.keep(tables.now, kept)
        return True
