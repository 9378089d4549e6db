"""The audit log: lists from read.db, and an export from the state of shard 0, which is the truth."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint, Read
from corvo.model.audit import Details
from corvo.model.errors import invalid
from corvo.model.job import Count
from corvo.model.limits import AUDIT_TEXT_CHARS_MAX, TEXT_CHARS_MAX
from corvo.state.audit_log import AuditEntry
from corvo.state.tables import Tables

LIMIT_MAX = 1000
OFFSET_MAX = 100_000  # further pages: `before_id`
COUNTED_MAX = 100_000  # beyond this `total` is not exact
EXPORT_RECORDS = 500  # in one piece of an export
EXPORT_BYTES = 1024 * 1024


class AuditPage(msgspec.Struct, array_like=True):
    """Records in order. `start` is the one before the first of them: its number and hash."""

    start: int
    start_hash: bytes
    last: int  # the newest record of the log
    last_hash: bytes
    entries: list[AuditEntry]


class ReadAudit(Read, tag=1090):
    after: Count
    records_max: Count
    bytes_max: Count

    result: ClassVar[Any] = AuditPage

    def read(self, tables: Tables) -> AuditPage:
        log = tables.audit_log
        if self.after > log.last.seq:
            raise invalid("after", f"the newest record of the audit log is {log.last.seq}")
        start, entries = log.after(self.after, self.records_max, self.bytes_max)
        return AuditPage(*start, *log.last, entries)


Moment = Annotated[str, Meta(max_length=64, description="RFC 3339, or a date")]


class AuditLogsQuery(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 100
    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX, description="leave out the newest so many")] = 0
    before_id: Annotated[int, Meta(ge=0, description="only older records than this one; 0: from the newest")] = 0
    principal: Annotated[str, Meta(max_length=TEXT_CHARS_MAX, description="a key's name, a person's address")] = ""
    method: Annotated[str, Meta(max_length=16, description="such as `DELETE`")] = ""
    path_prefix: Annotated[str, Meta(max_length=AUDIT_TEXT_CHARS_MAX, description="such as `/api/v1/queues/`")] = ""
    namespace: Annotated[
        str, Meta(max_length=63, description="only this one; others than your own need a key of the whole cluster")
    ] = ""
    since: Moment = ""
    until: Annotated[str, Meta(max_length=64, description="the same; this moment is not included")] = ""
    outcome: Annotated[Literal["", "ok", "refused", "denied", "unknown"], Meta(description="only these")] = ""
    consistent: Annotated[bool, Meta(description="include every change that was acknowledged before this request")] = (
        False
    )


class AuditMetadata(msgspec.Struct, omit_defaults=True):
    duration_ms: float | None = None
    query: Annotated[str, Meta(description="parameters after the `?`, without secrets")] = ""


class AuditLogView(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Fields from `kind` on are left out when empty."""

    id: Annotated[int, Meta(description="number of the record")]
    namespace: Annotated[str, Meta(description="in which it was done")]
    principal: Annotated[str, Meta(description="a key's name, a person's address, or `anonymous`")]
    role: Annotated[str, Meta(description="roles of the principal, with commas between them")]
    method: Annotated[str, Meta(description="HTTP method")]
    path: Annotated[str, Meta(description="of the request, without its query")]
    status_code: Annotated[int, Meta(description="0: not known, or not yet")]
    metadata: Annotated[AuditMetadata, Meta(description="how long it took, and the query")]
    created_at: str
    outcome: Annotated[
        str,
        Meta(
            description="`ok`; `refused`; `denied`: no credential or permission; `unknown`: the server stopped between "
            "the change and its record"
        ),
    ]
    kind: Annotated[str, Meta(description="of the principal: anonymous, password, key, person or proxy")] = ""
    key: Annotated[str, Meta(description="the beginning of the key's SHA-256")] = ""
    address: Annotated[str, Meta(description="of the client")] = ""
    request_id: Annotated[str, Meta(description="of the request")] = ""
    route: Annotated[str, Meta(description="name of the endpoint")] = ""
    code: Annotated[str, Meta(description="of the refusal")] = ""
    target: Annotated[dict[str, str], Meta(description="what the path names")] = {}
    change: Annotated[Details, Meta(description="what was asked for; secrets and payloads are never in it")] = {}
    made: Annotated[dict[str, str], Meta(description="ids of what was made")] = {}
    before: Annotated[Details | None, Meta(description="settings before the change")] = None
    after: Annotated[Details | None, Meta(description="settings after the change")] = None
    suppressed: Annotated[int, Meta(description="denials like this one that were not recorded one by one")] = 0


class AuditLogsAnswer(msgspec.Struct):
    audit_logs: Annotated[list[AuditLogView], Meta(description="newest first")]
    total: Annotated[int, Meta(description=f"all that match; counted up to {COUNTED_MAX}")]
    limit: int
    offset: Annotated[int, Meta(description="as it was asked for")]
    total_is_exact: Annotated[bool, Meta(description="false: there are more than `total`")]
    has_more: bool
    lag_ms: float


class AuditExportQuery(msgspec.Struct, forbid_unknown_fields=True):
    after: Annotated[int, Meta(ge=0, le=2**53 - 1, description="continue after this record")] = 0
    namespace: Annotated[
        str, Meta(max_length=63, description="only this one; others than your own need a key of the whole cluster")
    ] = ""


class AuditExportLine(msgspec.Struct):
    """A line between the first, `export`, and the last, `end`."""

    seq: Annotated[int, Meta(description="number of the record")]
    prev: Annotated[str, Meta(description="hash of the record before it")]
    hash: Annotated[str, Meta(description="SHA-256 of `prev`, as 32 bytes, and the bytes of `record`")]
    record: Annotated[Details, Meta(description="the record, byte for byte as it was stored")]


ENDPOINTS = (
    Endpoint(
        name="audit_logs",
        access="audit:read",
        method="GET",
        path="/audit-logs",
        summary="Changes, denied requests and audited reads, newest first",
        query=AuditLogsQuery,
        answers={200: AuditLogsAnswer},
        refusals=("VALIDATION_ERROR", "READ_DB_UNAVAILABLE"),
    ),
    Endpoint(
        name="export_audit_logs",
        access="audit:read",
        method="GET",
        path="/audit-logs/export",
        summary="The audit log as NDJSON, oldest record first, with its chain of hashes",
        query=AuditExportQuery,
        answers={200: AuditExportLine},
        media="application/x-ndjson",
        refusals=("VALIDATION_ERROR",),
    ),
)
