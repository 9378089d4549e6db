"""Which web pages may use the interface: the answers that a browser asks for (CORS), and OPTIONS.

A browser lets a page read answers of another origin only where the server names that origin. The default names none:
otherwise every page that somebody opens could use a server without authentication that only their machine can reach.
OPTIONS is answered in any case; without the origin, a browser takes the answer for a no. Cookies are for pages of the
server itself: no answer allows another origin to send them.
"""

from corvo.runtime.origins import ANY_ORIGIN
from gateway.http.messages import Request

Headers = list[tuple[bytes, bytes]]

_METHODS = b"GET, HEAD, POST, PUT, DELETE, OPTIONS"
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", _METHODS),
    (
        b"access-control-allow-headers",
        b"content-type, authorization, x-api-key, x-corvo-namespace, x-request-id, last-event-id",
    ),
    (b"access-control-max-age", b"600"),
]
_EXPOSED = (b"access-control-expose-headers", b"server-timing, retry-after, x-request-id")


class Cors:
    def __init__(self, origins: tuple[str, ...] = ()) -> None:
        self.is_on = bool(origins)
        self._takes_any = ANY_ORIGIN in origins
        self._origins = frozenset(origins)

    def headers(self, request: Request) -> Headers:
        """For any answer. None for a client that is no web page."""
        origin = request.header(b"origin")
        if self._takes_any:
            return [(b"access-control-allow-origin", b"*"), _EXPOSED] if origin else []
        vary = (b"vary", b"origin")  # a cache must not give the answer for one page to another
        if origin not in self._origins:
            return [vary]
        return [(b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED, vary]


def options(allowed: list[str]) -> Headers:
    """What an answer to OPTIONS says beside the origin."""
    return [(b"allow", ", ".join(allowed).encode()), *_PREFLIGHT]
