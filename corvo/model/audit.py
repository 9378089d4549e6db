"""Records of the audit log: who asked for which change, from where, and what came of it. Pure.

A record is one JSON document. The gateway writes it without its number and its time; the state machine puts both in
front (`corvo/state/audit_log.py`) and chains the bytes (`audit_chain.py`). The bytes are stored as they are and never
encoded again: a later version with more fields must not change the hash of an old record.

    intent   written before a change; nothing is done unless it is stored
    outcome  written after it; `intent` is the number of the record that announced it
    denied   a request that was refused for lack of a credential or a permission
    read     a person has read payloads (`--audit-payload-reads`)

No secret is in a record: of bodies and settings, only the fields that a table lists are taken over
(`gateway/access/audited.py`). Every text and the whole record are bounded.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from corvo.model.limits import (
    AUDIT_DETAILS_BYTES_MAX,
    AUDIT_RECORD_BYTES_MAX,
    AUDIT_TEXT_CHARS_MAX,
    TEXT_CHARS_MAX,
)

SHARD = 0  # keeps the log
Details = dict[str, Any]
UNKNOWN = "unknown"  # the outcome of a change that was announced and not reported


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fields at their default are left out of the document."""

    seq: int = 0
    at: str = ""
    kind: str  # intent, outcome, denied, read; a later version may have more
    intent: int = 0  # of an outcome: the number of the record that announced the change
    namespace: str
    principal: str = ""
    principal_kind: str = ""
    role: str = ""  # several with commas between them
    key: str = ""  # the beginning of the key's hash, or of the key where it is not known
    address: str = ""
    request_id: str = ""
    method: str = ""
    path: str = ""
    route: str = ""  # the name of the endpoint
    query: str = ""
    target: dict[str, str] = {}  # the parameters of the path
    change: Details = {}  # listed fields of the body
    before: Details | UnsetType | None = UNSET  # settings before the change; null: there were none
    after: Details | UnsetType | None = UNSET
    made: dict[str, str] = {}  # ids in the answer
    status: int = 0
    code: str = ""  # of a refusal
    duration_ms: float = 0.0
    suppressed: int = 0  # denials like this one since the last one that was recorded


_encode = msgspec.json.Encoder().encode
decode_record = msgspec.json.Decoder(AuditRecord).decode


def bounded(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """Cut to the bound; always valid UTF-8, whatever a client or an issuer of tokens has sent."""
    whole = text.encode("utf-8", "replace").decode()
    return whole if len(whole) <= chars_max else whole[: chars_max - 1] + "…"


def long_text(text: str) -> str:
    return bounded(text, AUDIT_TEXT_CHARS_MAX)


def bounded_details(details: Details) -> Details:
    """The details, or their size where they are too long."""
    size = len(_encode(details))
    return details if size <= AUDIT_DETAILS_BYTES_MAX else {"omitted_bytes": size}


def to_document(record: AuditRecord) -> bytes:
    """The document without number and time. The parts are bounded; should they together be too long, the details
    go."""
    document = _encode(record)
    if len(document) > AUDIT_RECORD_BYTES_MAX:
        omitted = {"omitted_bytes": len(document)}
        bare = msgspec.structs.replace(record, change=omitted, before=UNSET, after=UNSET, target={}, made={}, query="")
        document = _encode(bare)
    return document


def stamped(seq: int, at: str, document: bytes) -> bytes:
    """The whole document, as it is stored, chained and exported."""
    return b'{"seq":%d,"at":"%b",%b' % (seq, at.encode(), document[1:])


def is_document(document: bytes) -> bool:
    """Whether `stamped` gives an object again. Only gateways send documents."""
    return document.startswith(b'{"kind":"') and document.endswith(b"}")
