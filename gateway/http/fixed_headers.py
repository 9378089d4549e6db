"""Headers that every answer has: what a browser may do with it, and an id by which it is found in logs.

Most are constant, and made once: the fast path writes them as bytes.
"""

import os
import re
from itertools import count

Header = tuple[bytes, bytes]

REQUEST_ID = b"x-request-id"
# Of answers that are no pages. A page brings its own policy.
POLICY: Header = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_PLAIN: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),  # answers hold what their reader may see, and a cache has other readers
    POLICY,
)
_SECURE: tuple[Header, ...] = (*_PLAIN, (b"strict-transport-security", b"max-age=31536000"))

_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_OURS = os.urandom(5).hex().encode()  # of this process
_numbers = count(1)


def fixed_headers(is_secure: bool) -> tuple[Header, ...]:
    return _SECURE if is_secure else _PLAIN


def as_bytes(headers: tuple[Header, ...]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def missing(headers: list[Header], is_secure: bool) -> list[Header]:
    """Those that a page has not set itself."""
    own = {name.lower() for name, _ in headers}
    return [header for header in fixed_headers(is_secure) if header[0] not in own]


def request_id(headers: list[Header]) -> bytes:
    """The client's, if it can stand in a log as it is; else a new one."""
    for name, value in headers:
        if name == REQUEST_ID:
            if _ID.fullmatch(value):
                return value
            break
    return b"%b-%x" % (_OURS, next(_numbers))
