"""An exception for each code of a refusal. Written by `python -m corvo.cli.derive_client`: do not edit."""

from .errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    ServerRefused,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)


class ParseError(InvalidRequest):
    pass


class ValidationError(InvalidRequest):
    pass


class BadRequest(InvalidRequest):
    pass


class SignOnFailed(InvalidRequest):
    pass


class JobNotFound(NotFound):
    pass


class QueueNotFound(NotFound):
    pass


class BatchNotFound(NotFound):
    pass


class ScheduleNotFound(NotFound):
    pass


class BulkNotFound(NotFound):
    pass


class WorkerNotFound(NotFound):
    pass


class KeyNotFound(NotFound):
    pass


class RoleNotFound(NotFound):
    pass


class NamespaceNotFound(NotFound):
    pass


class MethodNotAllowed(InvalidRequest):
    pass


class RequestTimeout(InvalidRequest):
    pass


class WrongState(Conflict):
    pass


class LeaseLost(Conflict):
    pass


class MembershipRefused(Conflict):
    pass


class UniqueConflict(Conflict):
    pass


class ScheduleExists(Conflict):
    pass


class TooManySchedules(Conflict):
    pass


class KeyExists(Conflict):
    pass


class TooManyKeys(Conflict):
    pass


class TooManyRedactions(Conflict):
    pass


class RoleInUse(Conflict):
    pass


class TooManyRoles(Conflict):
    pass


class NamespaceInUse(Conflict):
    pass


class TooManyNamespaces(Conflict):
    pass


class QuotaExceeded(Conflict):
    pass


class JobMoved(Conflict):
    pass


class BatchSealed(Conflict):
    pass


class PayloadTooLarge(InvalidRequest):
    pass


class BodyTooLarge(InvalidRequest):
    pass


class UriTooLong(InvalidRequest):
    pass


class UnsupportedMediaType(InvalidRequest):
    pass


class HeadersTooLarge(InvalidRequest):
    pass


class Overloaded(TooManyRequests):
    pass


class RateLimited(TooManyRequests):
    pass


class InternalError(Unavailable):
    pass


class Unhealthy(Unavailable):
    pass


class ShardUnavailable(Unavailable):
    pass


class ReadDbUnavailable(Unavailable):
    pass


class AccessUnavailable(Unavailable):
    pass


class SignOnUnavailable(Unavailable):
    pass


class PayloadKeyMissing(Unavailable):
    pass


class AuditUnavailable(Unavailable):
    pass


class OutcomeUnknown(Unavailable):
    pass


class NotLeader(Unavailable):
    pass


class DeadlineExceeded(Unavailable):
    pass


class HttpVersionNotSupported(Unavailable):
    pass


CLASSES: dict[str, type[ServerRefused]] = {
    "PARSE_ERROR": ParseError,
    "VALIDATION_ERROR": ValidationError,
    "BAD_REQUEST": BadRequest,
    "SIGN_ON_FAILED": SignOnFailed,
    "UNAUTHORIZED": Unauthorized,
    "FORBIDDEN": Forbidden,
    "NOT_FOUND": NotFound,
    "JOB_NOT_FOUND": JobNotFound,
    "QUEUE_NOT_FOUND": QueueNotFound,
    "BATCH_NOT_FOUND": BatchNotFound,
    "SCHEDULE_NOT_FOUND": ScheduleNotFound,
    "BULK_NOT_FOUND": BulkNotFound,
    "WORKER_NOT_FOUND": WorkerNotFound,
    "KEY_NOT_FOUND": KeyNotFound,
    "ROLE_NOT_FOUND": RoleNotFound,
    "NAMESPACE_NOT_FOUND": NamespaceNotFound,
    "METHOD_NOT_ALLOWED": MethodNotAllowed,
    "REQUEST_TIMEOUT": RequestTimeout,
    "WRONG_STATE": WrongState,
    "LEASE_LOST": LeaseLost,
    "MEMBERSHIP_REFUSED": MembershipRefused,
    "UNIQUE_CONFLICT": UniqueConflict,
    "SCHEDULE_EXISTS": ScheduleExists,
    "TOO_MANY_SCHEDULES": TooManySchedules,
    "KEY_EXISTS": KeyExists,
    "TOO_MANY_KEYS": TooManyKeys,
    "TOO_MANY_REDACTIONS": TooManyRedactions,
    "ROLE_IN_USE": RoleInUse,
    "TOO_MANY_ROLES": TooManyRoles,
    "NAMESPACE_IN_USE": NamespaceInUse,
    "TOO_MANY_NAMESPACES": TooManyNamespaces,
    "QUOTA_EXCEEDED": QuotaExceeded,
    "JOB_MOVED": JobMoved,
    "BATCH_SEALED": BatchSealed,
    "PAYLOAD_TOO_LARGE": PayloadTooLarge,
    "BODY_TOO_LARGE": BodyTooLarge,
    "URI_TOO_LONG": UriTooLong,
    "UNSUPPORTED_MEDIA_TYPE": UnsupportedMediaType,
    "HEADERS_TOO_LARGE": HeadersTooLarge,
    "OVERLOADED": Overloaded,
    "RATE_LIMITED": RateLimited,
    "INTERNAL_ERROR": InternalError,
    "UNHEALTHY": Unhealthy,
    "SHARD_UNAVAILABLE": ShardUnavailable,
    "READ_DB_UNAVAILABLE": ReadDbUnavailable,
    "ACCESS_UNAVAILABLE": AccessUnavailable,
    "SIGN_ON_UNAVAILABLE": SignOnUnavailable,
    "PAYLOAD_KEY_MISSING": PayloadKeyMissing,
    "AUDIT_UNAVAILABLE": AuditUnavailable,
    "OUTCOME_UNKNOWN": OutcomeUnknown,
    "NOT_LEADER": NotLeader,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
    "HTTP_VERSION_NOT_SUPPORTED": HttpVersionNotSupported,
}
_OF_STATUS: dict[int, type[ServerRefused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: TooManyRequests,
}


def class_of(code: str, status: int) -> type[ServerRefused]:
    """For a code that is not known here, the group of its status."""
    by_range = Unavailable if status >= 500 else InvalidRequest if status >= 400 else ServerRefused
    return CLASSES.get(code) or _OF_STATUS.get(status) or by_range
