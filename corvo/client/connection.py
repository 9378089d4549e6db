"""What both drivers share: the address, the headers, and what a broken connection means in words."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import httpx

from . import DEFAULT_SERVER, __version__
from .errors import BadServer, Unreachable, UntrustedServer

API_KEY_HEADER = "x-api-key"
NAMESPACE_HEADER = "x-corvo-namespace"
TraceHeaders = Callable[[], Mapping[str, str]]  # such as `traceparent`: asked before each request
_LOOKS_LIKE_TLS = re.compile("without sending a response|illegal (?:status|request) line")  # who is told no TLS


class CallPatience(NamedTuple):
    timeout_s: float  # for one answer, beyond the time the server may hold it back
    deadline_s: float  # for all attempts of one call together
    waits_for_server: bool  # try again when nobody listens at the address


def no_trace() -> Mapping[str, str]:
    return {}


def standing_headers(api_key: str | None, namespace: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """Those that identify the client, and all that it sends with every request."""
    credentials = {API_KEY_HEADER: api_key} if api_key else {}
    chosen = {NAMESPACE_HEADER: namespace} if namespace else {}
    return credentials, {
        "user-agent": f"corvo/{__version__}",
        "accept": "application/json",
        **credentials,
        **chosen,
    }


def unreachable(error: httpx.TransportError, server: str, patience_s: float, is_secure: bool) -> Unreachable:
    if isinstance(error, httpx.ConnectError):
        if "SSL" in str(error):
            return UntrustedServer(_distrust(server, str(error)), was_sent=False)
        return Unreachable(f"nothing answers at {server} ({error})", was_sent=False)
    if isinstance(error, httpx.TimeoutException):
        was_sent = not isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
        return Unreachable(f"{server} did not answer within {patience_s:g} s", was_sent)
    hint = "; if it speaks TLS, its address begins with https://"
    is_likely = isinstance(error, httpx.RemoteProtocolError) and not is_secure and _LOOKS_LIKE_TLS.search(str(error))
    return Unreachable(f"the connection to {server} broke ({error}){hint if is_likely else ''}")


def _distrust(server: str, error: str) -> str:
    if found := re.search(r"certificate verify failed: (.+?)(?: \(_ssl|$)", error):
        return (
            f"the certificate of {server} is not trusted: {found[1]};"
            " --ca-cert or CORVO_CA_CERT names the file of the authority that signed it"
        )
    return f"{server} does not speak TLS as it should ({error}); if it speaks none, its address begins with http://"


def checked_server(server: str) -> str:
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
