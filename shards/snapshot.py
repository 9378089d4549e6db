"""A whole state from the leader to a follower that is too far behind for the log, while the leader goes on working.

The state on disk is the snapshot: the sender reads a frozen view of it, a piece at a time, as the receiver asks. The
receiver writes into a database beside its own, checks the whole, and leaves a mark; the swap happens at its next start
(`finish_install`), which it brings about by ending. A crash at any point leaves the old database or the new one.

Resumable: the receiver asks for "after this key", so a lost piece or a broken link costs one piece. The sender forgets
a session after a while without questions; an offer then begins a new one.
"""

import shutil
from collections.abc import Generator, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Protocol
from zlib import crc32

from corvo.node import sync_directory
from corvo.state import keys
from shards import raft
from shards.letters import Posted, SnapshotEnded, SnapshotOffer, SnapshotPiece, SnapshotWant
from shards.log_disk import Part, encode

PIECE_BYTES = 1024 * 1024
SESSION_IDLE_NS = 30_000_000_000


class Frozen(Protocol):
    """A view of the database that later writes do not change."""

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]: ...

    def close(self) -> None: ...


class Sending:
    """One stream to one follower. At most one per peer; a new one takes the place of the old."""

    def __init__(self, session: int, view: Frozen, install: raft.InstallSnapshot, applied: bytes, now_ns: int) -> None:
        self.peer = install.receiver
        self.session = session
        self.asked_ns = now_ns
        self.records = 0
        self._view = view
        self._pairs = _pairs(view, b"")
        self._offer = SnapshotOffer(session, raft.encode(install), applied)
        self._last: SnapshotPiece | None = None  # sent again when it is asked for again
        self._digest = blake2b(digest_size=16)
        self._next: tuple[bytes, bytes] | None = next(self._pairs, None)

    def offer(self) -> Posted:
        return Posted(self.peer, self._offer)

    def piece(self, want: SnapshotWant, now_ns: int) -> Posted | None:
        self.asked_ns = now_ns
        last = self._last
        if last is not None and want.after == last.after:
            return Posted(self.peer, last)
        if want.after != (last.records[-1][0] if last is not None and last.records else b""):
            return self.offer()  # we do not know where the receiver is: begin again
        records: list[tuple[bytes, bytes]] = []
        size = 0
        while self._next is not None and size < PIECE_BYTES:
            records.append(self._next)
            size += len(self._next[0]) + len(self._next[1])
            self._next = next(self._pairs, None)
        body = encode(records)
        self._digest.update(body)
        self.records += len(records)
        self._last = SnapshotPiece(
            self.session, want.after, records, crc32(body), self._next is None, self.records, self._digest.digest()
        )
        return Posted(self.peer, self._last)

    def close(self) -> None:
        self._pairs.close()
        self._view.close()


class Incoming(Protocol):
    """A database beside the live one."""

    def write(self, *parts: Part) -> None: ...

    def close(self) -> None: ...


class Receiving:
    """What has arrived of one stream."""

    def __init__(self, sender: str, offer: SnapshotOffer, incoming: Incoming) -> None:
        self.sender = sender
        self.session = offer.session
        self.applied = offer.applied
        self.install = offer.install
        self.records = 0
        self._after = b""
        self._incoming = incoming
        self._digest = blake2b(digest_size=16)

    def want(self) -> Posted:
        return Posted(self.sender, SnapshotWant(self.session, self._after))

    def take(self, piece: SnapshotPiece) -> bool | None:
        """True: complete and sound. False: damaged, throw it away. None: go on."""
        if piece.session != self.session or piece.after != self._after:
            return None  # an echo
        body = encode(piece.records)
        if crc32(body) != piece.checksum:
            return False
        self._digest.update(body)
        self.records += len(piece.records)
        self._incoming.write(dict(piece.records))
        if piece.records:
            self._after = piece.records[-1][0]
        if not piece.is_last:
            return None
        return self.records == piece.total and self._digest.digest() == piece.digest

    def finish(self, marker: raft.SnapshotMarker, hard_state: bytes, identity: bytes, incarnation: bytes) -> None:
        """Everything that makes it a replica's database of its own. Our term and vote are kept: they are promises."""
        self._incoming.write(
            {
                keys.APPLIED: self.applied,
                keys.LOG_META: encode((marker.index + 1, marker.term)),
                keys.MEMBERSHIP: encode(marker.membership),
                keys.HARD_STATE: hard_state,
                keys.INCARNATION: incarnation,
                keys.FEED_FLOOR: encode(marker.index),
                keys.IDENTITY: identity,
            }
        )
        self._incoming.close()

    def ended(self, ok: bool) -> Posted:
        return Posted(self.sender, SnapshotEnded(self.session, ok))

    def throw_away(self) -> None:
        self._incoming.close()


def incoming_path(path: Path) -> Path:
    return path.with_name(path.name + ".incoming")


def _mark(path: Path) -> Path:
    return path.with_name(path.name + ".installed")


def mark_installed(path: Path) -> None:
    """From here on the next start uses the new database."""
    with _mark(path).open("wb") as file:
        file.flush()
    sync_directory(path.parent)


def finish_install(path: Path) -> bool:
    """At start: complete a swap that was decided, sweep away a stream that was not. True when a swap was made."""
    incoming = incoming_path(path)
    if not _mark(path).exists():
        shutil.rmtree(incoming, ignore_errors=True)
        return False
    if incoming.exists():
        shutil.rmtree(path, ignore_errors=True)
        incoming.rename(path)
        sync_directory(path.parent)
    _mark(path).unlink()
    sync_directory(path.parent)
    return True


def _pairs(view: Frozen, after: bytes) -> Generator[tuple[bytes, bytes], None, None]:
    for start, stop in sorted(keys.state_ranges()):
        yield from view.scan(max(start, after), stop)
