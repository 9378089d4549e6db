"""Refusals: every error that a caller is told about.

    Refusal                      changes nothing; stable code, HTTP status, a sentence that names the remedy
    ├── by the request           PARSE_ERROR  VALIDATION_ERROR  PAYLOAD_TOO_LARGE  BODY_TOO_LARGE  NOT_FOUND …
    ├── by the principal         UNAUTHORIZED  FORBIDDEN
    ├── by the state             JOB_NOT_FOUND  WRONG_STATE  LEASE_LOST  UNIQUE_CONFLICT  BATCH_SEALED …
    └── by circumstances         OVERLOADED  SHARD_UNAVAILABLE  NOT_LEADER  AUDIT_UNAVAILABLE  (send again)
                                 OUTCOME_UNKNOWN  (look first)

A refusal decided inside an operation is data (`Refused`): it is replicated like any result and travels back over the
wire. A broken invariant is not a refusal: it raises `Corrupt`, and the process stops.
"""

import msgspec

# Code → HTTP status. The reference page of errors is generated from this table.
STATUS: dict[str, int] = {
    "PARSE_ERROR": 400,
    "VALIDATION_ERROR": 400,
    "BAD_REQUEST": 400,
    "SIGN_ON_FAILED": 400,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "JOB_NOT_FOUND": 404,
    "QUEUE_NOT_FOUND": 404,
    "BATCH_NOT_FOUND": 404,
    "SCHEDULE_NOT_FOUND": 404,
    "BULK_NOT_FOUND": 404,
    "WORKER_NOT_FOUND": 404,
    "KEY_NOT_FOUND": 404,
    "ROLE_NOT_FOUND": 404,
    "NAMESPACE_NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "REQUEST_TIMEOUT": 408,
    "WRONG_STATE": 409,
    "LEASE_LOST": 409,
    "MEMBERSHIP_REFUSED": 409,
    "UNIQUE_CONFLICT": 409,
    "SCHEDULE_EXISTS": 409,
    "TOO_MANY_SCHEDULES": 409,
    "KEY_EXISTS": 409,
    "TOO_MANY_KEYS": 409,
    "TOO_MANY_REDACTIONS": 409,
    "ROLE_IN_USE": 409,
    "TOO_MANY_ROLES": 409,
    "NAMESPACE_IN_USE": 409,
    "TOO_MANY_NAMESPACES": 409,
    "QUOTA_EXCEEDED": 409,
    "JOB_MOVED": 409,  # between shard and gateway only: `moved` names the shard, and the gateway asks there
    "BATCH_SEALED": 409,
    "PAYLOAD_TOO_LARGE": 413,
    "BODY_TOO_LARGE": 413,
    "URI_TOO_LONG": 414,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "HEADERS_TOO_LARGE": 431,
    "OVERLOADED": 429,
    "RATE_LIMITED": 429,
    "INTERNAL_ERROR": 500,
    "UNHEALTHY": 503,
    "SHARD_UNAVAILABLE": 503,
    "READ_DB_UNAVAILABLE": 503,
    "ACCESS_UNAVAILABLE": 503,
    "SIGN_ON_UNAVAILABLE": 503,
    "PAYLOAD_KEY_MISSING": 503,
    "AUDIT_UNAVAILABLE": 503,
    "OUTCOME_UNKNOWN": 503,
    "NOT_LEADER": 503,
    "DEADLINE_EXCEEDED": 504,
    "HTTP_VERSION_NOT_SUPPORTED": 505,
}

# Refusals that changed nothing for certain: the caller may send the request again.
RETRYABLE = frozenset(
    {
        "OVERLOADED",
        "RATE_LIMITED",
        "SHARD_UNAVAILABLE",
        "READ_DB_UNAVAILABLE",
        "ACCESS_UNAVAILABLE",
        "AUDIT_UNAVAILABLE",
        "NOT_LEADER",
    }
)


class Moved(msgspec.Struct, array_like=True, frozen=True):
    """The shard that a job has moved to. The gateway asks there, or waits until the job has arrived."""

    shard: int
    is_under_way: bool = False  # it has left, and that shard does not have it yet


class Refusal(Exception):
    """A request is refused. `field` names the offending input where there is one."""

    def __init__(
        self,
        code: str,
        message: str,
        field: str | None = None,
        retry_after_ms: int = 0,
        moved: Moved | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.retry_after_ms = retry_after_ms
        self.moved = moved

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def to_refused(self) -> "Refused":
        return Refused(self.code, self.message, self.retry_after_ms, self.moved)


class Refused(msgspec.Struct, array_like=True, frozen=True, tag=0):
    """A refusal as it travels between processes and stands in batch answers."""

    code: str
    message: str
    retry_after_ms: int = 0
    moved: Moved | None = None

    def to_refusal(self) -> Refusal:
        return Refusal(self.code, self.message, retry_after_ms=self.retry_after_ms, moved=self.moved)


class Corrupt(AssertionError):
    """The disk or the log holds something impossible. Never handled: the process stops and logs it."""


def invalid(field: str, message: str) -> Refusal:
    return Refusal("VALIDATION_ERROR", f"{field}: {message}", field=field)
