"""A replica on a real LevelDB with clocks moved by hand, and the plainest disk there is, in memory.

`Rig.ask` sends everything it is given as one message and takes one turn. A call that is not answered in that turn is
`WAITING`; what is answered later is found in `Rig.answers`.
"""

import resource
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corvo.endpoint import Operation, Query
from corvo.model.errors import Refusal
from corvo.queries.feed import FeedBatch, Pull, Scan, ScanPiece
from corvo.queries.job import GetJob, JobRecord
from corvo.state import keys
from corvo.state.kv import MemoryKV
from corvo.wire import Call, Reply, decode_replies, decode_result, encode, encode_replies
from shards.feed import MIRRORED
from shards.replica import Replica
from shards.storage.leveldb import Disk
from tests.support.builders import NOW, job_id

IDENTITY = b"cluster/node-1/0/1/1"
GATEWAY = b"gateway"
WAITING: Any = "still waiting"
LONG_MS = 3_600_000
HOUR_NS = 3_600_000_000_000

Hook = Callable[[int], None]  # is told the number of the write


def _nothing(number: int) -> None:
    pass


@contextmanager
def a_directory() -> Iterator[Path]:
    """For hypothesis, which does not want `tmp_path`: one directory an example."""
    with tempfile.TemporaryDirectory(prefix="corvo-") as path:
        yield Path(path)


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """Every file of this process that would grow past the size fails to: a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def newest_log(path: Path) -> Path:
    return max(path.glob("*.log"), key=lambda file: file.name)


class MemoryDisk(MemoryKV):
    """The same three methods as `Disk`; an object that is opened again is a restart."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    def write(self, *parts: Mapping[bytes, bytes | None]) -> None:  # type: ignore[override]
        self.writes += 1
        for part in parts:
            super().write(part)


class CountedDisk(Disk):
    """A real disk that counts, and can be told what to do around a write."""

    def __init__(self, path: Path, identity: bytes, is_synced: bool) -> None:
        self.writes = 0
        self.parts: list[dict[bytes, bytes | None]] = []  # of the last write
        self.before_write: Hook = _nothing
        self.after_write: Hook = _nothing
        super().__init__(path, identity, is_synced)

    def write(self, *parts: Mapping[bytes, bytes | None]) -> None:
        number = self.writes + 1
        self.before_write(number)
        super().write(*parts)
        self.writes = number
        self.parts = [dict(part) for part in parts]
        self.after_write(number)


class FakeCallers:
    """Callers of a replica: what they send is put here, and what they are sent is found here."""

    def __init__(self) -> None:
        self.arrived: list[tuple[bytes, list[Call]]] = []
        self.replies: list[tuple[bytes, list[Reply]]] = []
        self.gone: set[bytes] = set()

    def receive(self) -> list[tuple[bytes, list[Call]]]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def send(self, replies: list[tuple[bytes, list[Reply]]]) -> list[bytes]:
        self.replies += [(peer, some) for peer, some in replies if peer not in self.gone]
        return [peer for peer, _ in replies if peer in self.gone]

    def is_there(self, peer: bytes) -> bool:
        return peer not in self.gone

    def take_replies(self) -> list[tuple[bytes, list[Reply]]]:
        replies, self.replies = self.replies, []
        return replies


class Rig:
    def __init__(
        self,
        path: Path,
        is_synced: bool = False,
        before_write: Hook = _nothing,
        after_write: Hook = _nothing,
        is_opened: bool = True,
        shard_count: int = 1,
    ) -> None:
        self.path = path
        self.shard_count = shard_count
        self._hooks = (before_write, after_write)
        self.is_synced = is_synced
        self.wall_ns = NOW
        self.monotonic_ns = 1_000_000_000
        self.answers: dict[tuple[bytes, int], Any] = {}
        self.messages: list[tuple[bytes, bytes]] = []  # of the last turn
        self._asked: dict[tuple[bytes, int], type[Operation] | type[Query]] = {}
        self._last_id = 0
        if not path.exists():
            Disk.create(path, IDENTITY)
        if is_opened:
            self.open()

    def open(self, is_first_turn_taken: bool = True) -> None:
        self.disk = CountedDisk(self.path, IDENTITY, self.is_synced)
        self.disk.before_write, self.disk.after_write = self._hooks
        self.callers = FakeCallers()
        self.replica = Replica(
            0,
            "node-1",
            self.disk,
            self.callers,
            lambda: self.wall_ns,
            lambda: self.monotonic_ns,
            7,
            self.is_synced,
            shard_count=self.shard_count,
        )
        if is_first_turn_taken:
            self.turn()

    def kill(self) -> None:
        """As by kill -9: what was written stays, what was only in memory is gone. (`Disk.close` writes nothing.)"""
        self.disk.close()

    def restart(self) -> None:
        self.kill()
        self.open()

    # Asking

    def ask(self, *asks: Operation | Query, peer: bytes = GATEWAY, deadline_ms: int = LONG_MS) -> list[Any]:
        calls = [self.call(ask, peer, deadline_ms) for ask in asks]
        self.turn((peer, calls))
        return [self.answers.get((peer, call.id), WAITING) for call in calls]

    def one(self, ask: Operation | Query, **rest: Any) -> Any:
        return self.ask(ask, **rest)[0]

    def call(self, ask: Operation | Query, peer: bytes = GATEWAY, deadline_ms: int = LONG_MS) -> Call:
        self._last_id += 1
        self._asked[peer, self._last_id] = type(ask)
        return Call(self._last_id, deadline_ms, encode(ask))

    def turn(self, *arrived: tuple[bytes, list[Call]]) -> None:
        self.callers.arrived += arrived
        self.replica.turn(self.monotonic_ns)
        self.messages = [(peer, encode_replies(replies)) for peer, replies in self.callers.take_replies()]
        for peer, message in self.messages:
            for reply in decode_replies(message):
                key = (peer, reply.id)
                assert key not in self.answers, "a call was answered twice"
                try:
                    self.answers[key] = decode_result(self._asked[key], reply)
                except Refusal as refusal:
                    self.answers[key] = refusal.to_refused()

    @property
    def last_key(self) -> tuple[bytes, int]:
        return GATEWAY, self._last_id

    def job(self, job: int | str = 1) -> JobRecord:
        record = self.one(GetJob(job_id(job)))
        assert isinstance(record, JobRecord), record
        return record

    # Time

    def advance(self, ns: int) -> None:
        self.wall_ns += ns
        self.monotonic_ns += ns

    def sleep_ns(self) -> int:
        """How long nothing need be done unless something arrives; an hour at most."""
        next_ns = self.replica.next_ns()
        return HOUR_NS if next_ns is None else min(max(next_ns - self.monotonic_ns, 0), HOUR_NS)

    def sleep(self) -> int:
        """Exactly as long as the replica says, then a turn. The nanoseconds slept."""
        slept = self.sleep_ns()
        self.advance(slept)
        self.turn()
        return slept

    def sleep_through(self, ns: int) -> int:
        """As the loop does, for this long. The number of turns it took."""
        end, turns = self.monotonic_ns + ns, 0
        while (left := end - self.monotonic_ns) > 0:
            self.advance(min(self.sleep_ns(), left))
            self.turn()
            turns += 1
            assert turns < 100_000, "busy turns"
        return turns

    # What tests look at

    @property
    def commit_index(self) -> int:
        return self.replica.raft.commit_index

    def state(self) -> tuple[dict[bytes, bytes], bytes]:
        """Every byte of the replicated state, flushed or not, and the hash over all changes."""
        return records_of(self.replica.tables.overlay), self.replica.tables.applied.hash


class Mirror:
    """`gateway/mirror/follow.py` in a dict: one question at a time, stretches replaced, gaps scanned."""

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}
        self.after = 0
        self.is_scanning = True
        self.start = b""
        self.as_of = 0

    def question(self, records_max: int) -> Scan | Pull:
        return Scan(self.start, records_max) if self.is_scanning else Pull(self.after, 0, records_max)

    def take(self, answer: ScanPiece | FeedBatch) -> None:
        if isinstance(answer, ScanPiece):
            self._take_piece(answer)
        else:
            self._take_batch(answer)

    def _take_piece(self, piece: ScanPiece) -> None:
        if not self.start:
            self.as_of = piece.as_of
        stretch_end = piece.next_key or b"\xff"
        self.records = {key: value for key, value in self.records.items() if not self.start <= key < stretch_end}
        self.records.update(piece.records)
        self.start = piece.next_key
        if not piece.next_key:
            self.is_scanning, self.after = False, self.as_of

    def _take_batch(self, batch: FeedBatch) -> None:
        if batch.is_gap or batch.upto < self.after:
            self.is_scanning, self.start, self.as_of = True, b"", 0
            return
        for key, value in batch.records:
            if value is None:
                self.records.pop(key, None)
            else:
                self.records[key] = value
        self.after = batch.upto


def records_of(kv: Any) -> dict[bytes, bytes]:
    """The replicated state. The log shares a prefix with retrying jobs; its keys go on with a NUL."""
    found: dict[bytes, bytes] = {}
    for prefix in keys.STATE_PREFIXES:
        found.update(kv.scan(prefix, keys.prefix_end(prefix)))
    return {key: value for key, value in found.items() if not key.startswith(b"r|\0")}


def mirrored(kv: Any) -> dict[bytes, bytes]:
    """What a mirror must show."""
    found: dict[bytes, bytes] = {}
    for prefix in MIRRORED:
        found.update(kv.scan(prefix, keys.prefix_end(prefix)))
    return found
