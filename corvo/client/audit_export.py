"""The export of the audit log, line by line, from a server or a file. Lines end with LF and nothing else: texts in a
record may hold other separators."""

from collections.abc import Iterable, Iterator

ACCEPT_LINES = {"accept": "application/x-ndjson"}
LINE_BYTES_MAX = 1024 * 1024  # far more than a record may have


class NotAnExport(ValueError):
    """A line that no server sends."""


class LineSplitter:
    """Pieces in, lines out, without their ends."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise NotAnExport(f"a line is longer than {LINE_BYTES_MAX} bytes: this is no export of the audit log")
        return lines

    def end(self) -> list[bytes]:
        """The last line, if nothing ended it."""
        return [self._rest] if self._rest else []


def split_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    lines = LineSplitter()
    for piece in pieces:
        yield from lines.feed(piece)
    yield from lines.end()
