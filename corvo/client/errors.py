"""What a call can raise.

    CorvoError
    ├── ServerRefused                    the server answered no: `code`, `status`, a sentence; `retry_after_s`, `field`
    │   ├── InvalidRequest               the request is wrong: PARSE_ERROR  VALIDATION_ERROR  PAYLOAD_TOO_LARGE …
    │   ├── Unauthorized   Forbidden
    │   ├── NotFound                     JobNotFound  QueueNotFound  BatchNotFound …
    │   ├── Conflict                     LeaseLost  WrongState  UniqueConflict  BatchSealed …
    │   ├── TooManyRequests              Overloaded  RateLimited
    │   └── Unavailable                  ShardUnavailable  OutcomeUnknown  DeadlineExceeded …
    ├── Unreachable                      no answer came
    │   └── UntrustedServer              its certificate convinces nobody
    └── BadServer                        the address is no address

There is a class for each code of the server (`refusals.py`). A newer server's codes are members of their group.
"""

from http import HTTPStatus

from .routes import CODES, RETRYABLE

_UNCERTAIN = frozenset({"OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED"})
_OF_PROXIES = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})  # who knows how far it came


class CorvoError(Exception):
    """Everything that this client raises."""


class BadServer(CorvoError, ValueError):
    """The address of the server is no address."""


class Unreachable(CorvoError):
    """No answer came: nobody listens there, or the connection broke."""

    def __init__(self, message: str, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent  # False: the server certainly knows nothing of the request


class UntrustedServer(Unreachable):
    """Somebody answers, but not by TLS, or with a certificate that convinces nobody. Says what to do."""


class ServerRefused(CorvoError):
    """The server answered no, or answered something that cannot be read."""

    def __init__(
        self, code: str, message: str, status: int, retry_after_s: float | None = None, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s  # None: the server did not say
        self.field = field  # of the request, where one is to blame

    @property
    def may_retry(self) -> bool:
        """Only what certainly changed nothing: after a 504 the first request may still have been applied. A proxy's
        429 or 503 has no code of ours and never reached the server."""
        if self.code in CODES:
            return self.code in RETRYABLE
        return self.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)

    @property
    def is_uncertain(self) -> bool:
        """Whether the request may have been carried out all the same."""
        return self.code in _UNCERTAIN or (self.code not in CODES and self.status in _OF_PROXIES)


class InvalidRequest(ServerRefused):
    """The request is wrong: it will be refused again."""


class Unauthorized(ServerRefused):
    """The credential is missing or does not count."""


class Forbidden(ServerRefused):
    """The credential does not permit this."""


class NotFound(ServerRefused):
    """There is no such job, queue, batch, schedule, …"""


class Conflict(ServerRefused):
    """The state does not allow it, or somebody was faster."""


class TooManyRequests(ServerRefused):
    """The server has too much to do, or this client asks too often. Nothing was changed."""


class Unavailable(ServerRefused):
    """The server cannot at the moment."""
