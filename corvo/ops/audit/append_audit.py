"""AppendAudit: add a record to the audit log. A gateway sends it before and after each change that it audits.

The result is the number of the record. A repeated request gets the number of the first one.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Operation
from corvo.model.audit import is_document
from corvo.model.errors import Refusal
from corvo.model.job import RequestId
from corvo.model.limits import AUDIT_RECORD_BYTES_MAX
from corvo.state.tables import Tables


class AppendAudit(Operation, tag=90):
    ask_id: RequestId
    document: Annotated[bytes, Meta(max_length=AUDIT_RECORD_BYTES_MAX)]  # JSON, without number and time

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        if not is_document(self.document):
            raise Refusal("BAD_REQUEST", "this is no record of the audit log")
        return tables.audit_log.append(tables.now, self.ask_id, self.document)
