"""A whole state from the leader to a follower that is too far behind for the log, while the leader goes on working.

The state on disk is the snapshot. The sender reads a frozen view of it, a piece at a time, as the receiver asks; the
receiver writes into a database beside its own and asks for the next. So neither holds more than a piece in memory, and
a piece that is lost costs a piece. How far it has come the receiver writes with each piece, in one batch: also after
its own restart it goes on where it was. Each piece carries a digest of everything up to it.

A received state becomes the replica's own at its next start: `install` makes the database whole and leaves a mark, the
process ends, `finish_install` swaps the directories. A crash at any point leaves the old database or the new one.

    NN             the database in use
    NN.incoming    a state on its way here
    NN.install     the mark: what is in NN.incoming is whole and takes the place of NN
    NN.old         what is being removed
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from corvo.model.errors import Corrupt
from corvo.queries.cluster import TransferStatus
from corvo.runtime.process import sync_directory
from corvo.state import keys
from corvo.state.tables import decode_applied
from shards import raft
from shards.snapshots.messages import SnapshotEnded, SnapshotMessage, SnapshotOffer, SnapshotPiece, SnapshotWant
from shards.snapshots.streams import Incoming, Outgoing, StreamArrived, decode_arrived, described, first_place
from shards.storage.leveldb import Disk
from shards.storage.raft_log import encode

STREAMS_MAX = 2  # outgoing: each keeps LevelDB from forgetting what was overwritten since
ASK_AGAIN_NS = 1_000_000_000
SESSION_IDLE_NS = 30_000_000_000
SILENCE_NS = 2 * SESSION_IDLE_NS  # the sender has forgotten us by then, or is gone

_decode_hard_state = msgspec.msgpack.Decoder(raft.HardState).decode


class Sent(msgspec.Struct, frozen=True):
    """A stream to this peer is over: for `raft.report_snapshot`."""

    peer: str
    ok: bool


class Complete(msgspec.Struct, frozen=True):
    """A state is here and sound: for `raft.step`. If Raft then does not ask for it to be installed: `discard`."""

    install: raft.InstallSnapshot


Event = Sent | Complete


class Snapshots:
    """Both directions of one replica. `post` says whether a message could be sent; none needs to arrive."""

    def __init__(self, disk: Disk, path: Path, identity: bytes, post: Callable[[str, SnapshotMessage], bool]) -> None:
        self._disk = disk
        self._path = path
        self._identity = identity
        self._post = post
        self._outgoing: dict[str, Outgoing] = {}
        self._sessions = 0
        self._incoming: Incoming | None = None
        self._ask_at_ns = 0
        self._give_up_ns: int | None = None  # None: no sender has been asked yet
        self._is_installed = False
        self._events: list[Event] = []
        self._recall()

    # Sending

    def send(self, install: raft.InstallSnapshot, now_ns: int) -> None:
        """Offer the state that is on disk now; or once more the one that is being sent, if there is one."""
        peer = install.receiver
        stream = self._outgoing.get(peer)
        if stream is not None and now_ns - stream.asked_ns >= SESSION_IDLE_NS:
            self._forget(peer)
            stream = None
        if stream is None:
            stream = self._begin_sending(install, now_ns)
        else:
            stream.renew(install)
        if stream is None or not self._post(peer, stream.offer()):
            self._events.append(Sent(peer, False))

    def _begin_sending(self, install: raft.InstallSnapshot, now_ns: int) -> Outgoing | None:
        if len(self._outgoing) >= STREAMS_MAX:
            return None
        view = self._disk.frozen()
        found = described(install, view)
        if found is None:
            view.close()
            return None
        self._sessions += 1
        # Unique and growing over all incarnations: a session of an earlier one is never taken for one of this.
        session = (install.sender_incarnation << 32) + self._sessions
        stream = Outgoing(session, view, *found, now_ns)
        self._outgoing[install.receiver] = stream
        return stream

    def _forget(self, peer: str) -> None:
        stream = self._outgoing.pop(peer, None)
        if stream is not None:
            stream.close()

    def _answer(self, peer: str, want: SnapshotWant, now_ns: int) -> None:
        stream = self._outgoing.get(peer)
        piece = None
        if stream is not None and stream.session == want.session:
            stream.asked_ns = now_ns
            piece = stream.piece(want.after)
        self._post(peer, piece or SnapshotEnded(want.session, False))

    # Receiving

    def receive(self, node: str, body: SnapshotMessage, now_ns: int) -> Event | None:
        if isinstance(body, SnapshotOffer):
            self._consider(node, body, now_ns)
        elif isinstance(body, SnapshotWant):
            self._answer(node, body, now_ns)
        elif isinstance(body, SnapshotPiece):
            return self._take(node, body, now_ns)
        elif isinstance(body, SnapshotEnded):
            return self._end(node, body)
        return None

    def _consider(self, sender: str, offer: SnapshotOffer, now_ns: int) -> None:
        if self._is_installed:
            return
        # A state that was offered to an earlier incarnation of ours is as good for this one.
        install = msgspec.structs.replace(offer.install, receiver_incarnation=0)
        current = self._incoming
        if current is not None and current.is_of(sender, offer.session):
            if current.arrived.is_complete:
                self._post(sender, SnapshotEnded(offer.session, True))
                return
            if install.term > current.arrived.install.term:
                current.renew(install)
        elif current is None or current.yields_to(sender, offer):
            self.discard()
            path = _beside(self._path, "incoming")
            Disk.create(path, None)
            arrived = StreamArrived(sender, offer.session, install, offer.applied, b"", first_place(offer.applied))
            self._incoming = Incoming(Disk(path, None, is_synced=True), arrived)
            self._incoming.renew(install)
        else:
            return
        self._give_up_ns = now_ns + SILENCE_NS
        self._ask(now_ns)

    def _ask(self, now_ns: int) -> None:
        assert self._incoming is not None
        arrived = self._incoming.arrived
        if arrived.install.index <= self._applied_index():  # the log has brought us there meanwhile
            self.discard()
            self._post(arrived.sender, SnapshotEnded(arrived.session, True))
            return
        self._ask_at_ns = now_ns + ASK_AGAIN_NS
        self._post(arrived.sender, SnapshotWant(arrived.session, arrived.after))

    def _take(self, sender: str, piece: SnapshotPiece, now_ns: int) -> Event | None:
        current = self._incoming
        if current is None or not current.is_of(sender, piece.session):
            return None
        arrived = current.arrived
        if arrived.is_complete or piece.after != arrived.after:
            return None  # an echo
        if not current.take(piece):
            self.discard()
            self._post(sender, SnapshotEnded(piece.session, False))
            return None
        self._give_up_ns = now_ns + SILENCE_NS
        if not piece.is_last:
            self._ask(now_ns)
            return None
        self._post(sender, SnapshotEnded(piece.session, True))
        return Complete(arrived.install)

    def _end(self, node: str, ended: SnapshotEnded) -> Event | None:
        """From the receiver of a stream of ours, or from a sender that does not know the stream we ask for."""
        current = self._incoming
        is_ours = current is not None and current.is_of(node, ended.session)
        if is_ours and self._is_asking() and not ended.ok:
            self.discard()
        stream = self._outgoing.get(node)
        if stream is None or stream.session != ended.session:
            return None
        self._forget(node)
        return Sent(node, ended.ok)

    def _applied_index(self) -> int:
        raw = self._disk.get(keys.APPLIED)
        return 0 if raw is None else decode_applied(raw).index

    # Time

    def tick(self, now_ns: int) -> list[Event]:
        events, self._events = self._events, []
        for peer, stream in list(self._outgoing.items()):
            if now_ns - stream.asked_ns >= SESSION_IDLE_NS:
                self._forget(peer)
                events.append(Sent(peer, False))
        if self._is_asking() and now_ns >= self._ask_at_ns:
            self._give_up_ns = self._give_up_ns or now_ns + SILENCE_NS
            if now_ns >= self._give_up_ns:
                self.discard()
            else:
                self._ask(now_ns)
        return events

    def next_tick_ns(self) -> int | None:
        """When `tick` has something to do; 0 for now, None for not before the next message."""
        if self._events:
            return 0
        moments = [stream.asked_ns + SESSION_IDLE_NS for stream in self._outgoing.values()]
        if self._is_asking():
            moments.append(self._ask_at_ns)
        return min(moments, default=None)

    def _is_asking(self) -> bool:
        return self._incoming is not None and not self._incoming.arrived.is_complete

    # What becomes of it

    def install(self, marker: raft.SnapshotMarker, hard_state: raft.HardState | None) -> None:
        """Make what was received the state of the next start. The process ends now: nothing may be written after it."""
        incoming = self._incoming
        assert incoming is not None and incoming.arrived.is_complete, "there is nothing to install"
        arrived = incoming.arrived
        assert (arrived.install.index, arrived.install.index_term) == (marker.index, marker.term), "another state came"
        part = {
            keys.APPLIED: arrived.applied,
            keys.LOG_META: encode((marker.index + 1, marker.term)),
            keys.MEMBERSHIP: encode(marker.membership),
            keys.HARD_STATE: encode(self._promises(marker, hard_state)),
            keys.INCARNATION: self._disk.get(keys.INCARNATION),
            keys.FEED_FLOOR: encode(marker.index),
            keys.IDENTITY: self._identity,
        }
        if arrived.install.receiver not in marker.membership.learners:  # else the group has taken us in again
            part[keys.FORGETFUL] = self._disk.get(keys.FORGETFUL)
        incoming.disk.write(part)
        incoming.disk.close()
        self._incoming, self._is_installed = None, True
        _mark(self._path)

    def _promises(self, marker: raft.SnapshotMarker, given: raft.HardState | None) -> raft.HardState:
        """Our own term and vote: what was promised to others does not come from others."""
        if given is None:
            raw = self._disk.get(keys.HARD_STATE)
            given = raft.HardState() if raw is None else _decode_hard_state(raw)
        assert given.term >= marker.term, "a state from a later term than ours"
        return raft.HardState(given.term, given.vote, marker.index)

    def discard(self) -> None:
        """Throw away what was received."""
        if self._incoming is not None:
            self._incoming.disk.close()
            self._incoming = None
            _remove(self._path, _beside(self._path, "incoming"))

    def transfers(self) -> list[TransferStatus]:
        found = [
            TransferStatus(peer, True, stream.install.index, stream.latest.records, stream.latest.bytes)
            for peer, stream in self._outgoing.items()
        ]
        if self._incoming is not None:
            arrived = self._incoming.arrived
            place = arrived.place
            found.append(TransferStatus(arrived.sender, False, arrived.install.index, place.records, place.bytes))
        return found

    def close(self) -> None:
        """Before the disk is closed. What has come stays, to go on from."""
        for peer in list(self._outgoing):
            self._forget(peer)
        if self._incoming is not None:
            self._incoming.disk.close()
            self._incoming = None

    def _recall(self) -> None:
        """After a start: what was installed, and what was on its way."""
        raw = self._disk.get(keys.INCOMING)
        if raw is not None:
            # This database came by a stream. The leader does not know that it is in use: once our core has seen the
            # message again it says so, before the leader takes it for an empty replica and sends it everything.
            self._events.append(Complete(decode_arrived(raw).install))
            self._disk.write({keys.INCOMING: None})
        path = _beside(self._path, "incoming")
        if not path.exists():
            return
        try:
            disk = Disk(path, None, is_synced=True)
        except Corrupt:
            _remove(self._path, path)  # a copy, or one that was almost installed; another can be had
            return
        raw = disk.get(keys.INCOMING)
        if raw is None:
            disk.close()
            _remove(self._path, path)
            return
        self._incoming = Incoming(disk, decode_arrived(raw))
        if self._incoming.arrived.is_complete:
            self._events.append(Complete(self._incoming.arrived.install))


def finish_install(path: Path) -> bool:
    """At start, before the database is opened: make the swap that was decided. True when one was made."""
    mark, incoming, old = _beside(path, "install"), _beside(path, "incoming"), _beside(path, "old")
    is_decided = mark.exists()
    if is_decided and incoming.exists():
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
            sync_directory(path.parent)
        incoming.rename(path)
        sync_directory(path.parent)
    if is_decided:
        mark.unlink()
        sync_directory(path.parent)
    shutil.rmtree(old, ignore_errors=True)
    return is_decided


def _beside(path: Path, name: str) -> Path:
    return path.with_name(f"{path.name}.{name}")


def _mark(path: Path) -> None:
    """From here on the next start uses what was received: all of it is on disk, then the mark is."""
    incoming = _beside(path, "incoming")
    for file in incoming.iterdir():
        _sync_file(file)
    sync_directory(incoming)
    mark = _beside(path, "install")
    mark.touch()
    _sync_file(mark)
    sync_directory(path.parent)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _remove(path: Path, unwanted: Path) -> None:
    """By renaming it first: half a database must never be found under its name."""
    old = _beside(path, "old")
    shutil.rmtree(old, ignore_errors=True)
    unwanted.rename(old)
    shutil.rmtree(old, ignore_errors=True)
