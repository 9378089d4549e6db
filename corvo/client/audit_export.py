"""The export of the audit log, line by line, from a server or a file. Lines end with LF and nothing else: texts in a
record may hold other separators."""

from collections.abc import Iterable, Iterator

from .calls import PREFIX, refusal_of
from .http import Client

SILENCE_S = 40.0  # the server reads a page of records in milliseconds
LINE_BYTES_MAX = 1024 * 1024  # far more than a record may have


class NotAnExport(ValueError):
    """A line that no server sends."""


def exported(client: Client, after: int = 0, namespace: str = "") -> Iterator[bytes]:
    """The lines of an export, without their ends."""
    query = {"after": str(after)} if after else {}
    query |= {"namespace": namespace} if namespace else {}
    headers = {"accept": "application/x-ndjson"}
    with client.open_stream(f"{PREFIX}/audit-logs/export", query, headers, SILENCE_S) as response:
        if response.status_code != 200:
            raise refusal_of(response.status_code, response.headers, response.read())
        yield from split_lines(response.iter_bytes())


def split_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > LINE_BYTES_MAX:
            raise NotAnExport(f"a line is longer than {LINE_BYTES_MAX} bytes: this is no export of the audit log")
    if rest:
        yield rest
