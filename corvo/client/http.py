"""The synchronous driver: sends calls over httpx, waits out an overload, and gives up at a deadline.

A call is repeated only when the server said that it changed nothing (429, 503). A connection that breaks half-way is
not repeated: whoever called knows whether the job may exist twice.
"""

import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

import httpx

from . import DEFAULT_SERVER, __version__, calls
from .calls import HttpCall, ServerRefused
from .methods import Methods
from .trust import trusting

PAUSE_S_FIRST = 0.2  # between attempts when the server named no time; doubled each time
PAUSE_S_MAX = 5.0
API_KEY_HEADER = "x-api-key"
_LOOKS_LIKE_TLS = re.compile("without sending a response|illegal (?:status|request) line")  # who is told no TLS

A = TypeVar("A")


class Unreachable(Exception):
    """No answer came: nobody listens there, or the connection broke."""


class UntrustedServer(Unreachable):
    """Somebody answers, but not by TLS, or with a certificate that convinces nobody. Says what to do."""


class BadServer(ValueError):
    """The address of the server is no address."""


class Client(Methods):
    """One connection pool to one server; a method for each endpoint (`methods.py`).

    `sleep` and `clock` are handed in by tests. `secure` is the TLS context of its connections, None without TLS, and
    `credentials` the headers that identify it: both for other connections to the same server.
    """

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        timeout_s: float = 10.0,  # for one answer, beyond the time the server may hold it back
        deadline_s: float = 15.0,  # for all attempts of one call together
        ca_cert: str | None = None,  # file of the authorities to trust; None: see `trusting`
        api_key: str | None = None,  # sent with every request
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server = _checked(server)
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._sleep = sleep
        self._clock = clock
        self.credentials: dict[str, str] = {} if not api_key else {API_KEY_HEADER: api_key}
        self.secure = trusting(ca_cert) if self.server.startswith("https:") else None
        self._http = httpx.Client(
            base_url=self.server,
            verify=self.secure or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # not used; httpx would load authorities
            headers={"user-agent": f"corvo/{__version__}", "accept": "application/json", **self.credentials},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(self, call: HttpCall[A]) -> A:
        deadline = self._clock() + self._deadline_s
        pause = PAUSE_S_FIRST
        while True:
            try:
                return self._send(call)
            except ServerRefused as refused:
                wait = pause if refused.retry_after_s is None else refused.retry_after_s
                if not refused.may_retry or self._clock() + wait > deadline:
                    raise
            self._sleep(wait)
            pause = min(2 * pause, PAUSE_S_MAX)

    def _send(self, call: HttpCall[A]) -> A:
        headers = {} if call.body is None else {"content-type": "application/json"}
        patience_s = self._timeout_s + call.wait_s
        with self._reached(patience_s):
            response = self._http.request(
                call.method,
                call.path,
                content=call.body,
                headers=headers,
                timeout=httpx.Timeout(self._timeout_s, read=patience_s),
            )
        return calls.read_answer(call, response.status_code, response.headers, response.content)

    @contextmanager
    def open_stream(
        self, path: str, query: dict[str, str], headers: dict[str, str], silence_s: float
    ) -> Iterator[httpx.Response]:
        """An answer that goes on; it is lost when nothing comes for so long."""
        timeout = httpx.Timeout(self._timeout_s, read=silence_s)
        with (
            self._reached(silence_s),
            self._http.stream("GET", path, params=query, headers=headers, timeout=timeout) as response,
        ):
            yield response

    @contextmanager
    def _reached(self, patience_s: float) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError as error:
            if "SSL" in str(error):
                raise UntrustedServer(_distrust(self.server, str(error))) from None
            raise Unreachable(f"nothing answers at {self.server} ({error})") from None
        except httpx.TimeoutException:
            raise Unreachable(f"{self.server} did not answer within {patience_s:g} s") from None
        except httpx.RemoteProtocolError as error:
            hint = "; if it speaks TLS, its address begins with https://"
            is_likely = self.secure is None and _LOOKS_LIKE_TLS.search(str(error))
            raise Unreachable(f"the connection to {self.server} broke ({error}){hint if is_likely else ''}") from None
        except httpx.TransportError as error:
            raise Unreachable(f"the connection to {self.server} broke ({error})") from None


def _distrust(server: str, error: str) -> str:
    if found := re.search(r"certificate verify failed: (.+?)(?: \(_ssl|$)", error):
        return (
            f"the certificate of {server} is not trusted: {found[1]};"
            " --ca-cert or CORVO_CA_CERT names the file of the authority that signed it"
        )
    return f"{server} does not speak TLS as it should ({error}); if it speaks none, its address begins with http://"


def _checked(server: str) -> str:
    """`localhost:8080` is what people type; a scheme is added to it."""
    if "://" not in server:
        server = f"http://{server}"
    try:
        url = httpx.URL(server)
    except httpx.InvalidURL as error:
        raise BadServer(f"{server!r} is no address of a server: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise BadServer(f"{server!r} is no address of a server: expected such as {DEFAULT_SERVER}")
    return server.rstrip("/")
