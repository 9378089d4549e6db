"""Power cuts at every write: what was acknowledged is there, nothing is there twice, and no state has a hole.

The disk after a cut is a copy of the directory as the last completed write left it. (Every write is synced, which
`test_every_write_is_synced` holds; so this is what a real disk promises.) A gateway then sends again what was not
answered, with the ids of the first sending.
"""

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corvo.endpoint import Operation, Query
from corvo.engine import apply_entry
from corvo.model.lifecycle import State
from corvo.model.retry import Backoff
from corvo.ops.jobs.fetch import Fetch
from corvo.state.kv import MemoryKV
from corvo.state.tables import Tables
from corvo.wire import operations_of
from shards.raft import EntryKind
from shards.storage import leveldb, raft_log
from shards.storage.leveldb import Disk
from shards.storage.raft_log import RaftLog
from tests.shards.rig import GATEWAY, IDENTITY, Mirror, Rig, mirrored, newest_log, records_of
from tests.support.builders import MS, SECOND, ack, cancel, enqueue, fail, fetch, heartbeat, job_id
from tests.support.machine import told

Step = list[Operation | Query] | int  # asks sent in one message, or nanoseconds of waiting
SCHEDULED_AT = 1_767_225_600 * SECOND + 1_300 * MS

SCRIPT: list[Step] = [
    [enqueue(1), enqueue(2, max_retries=2, backoff=Backoff.FIXED, base_delay_ms=300)],
    [fetch("mail", claim=1, worker="w1", count=2)],
    2 * MS,
    [ack(1, ask=11, result=b'"done"'), fail(2, ask=12, error="boom")],
    [fetch("mail", claim=2, worker="w2", wait_ms=60_000)],  # answered when job 2 comes back
    [enqueue(3, scheduled_at=SCHEDULED_AT), enqueue(4, queue="video")],
    6 * MS,
    [fetch("video", claim=3, worker="w3", lease_ms=1_000), heartbeat(4)],
    [enqueue(5, queue="video"), cancel(5, ask=13), enqueue(6, queue="video")],
    400 * MS,
    [heartbeat(4, progress=b'{"n":1}')],
    [fail(2, ask=14), ack(99, ask=15)],
    SECOND,  # job 3 falls due, job 4 loses its lease
    [fetch("mail", "video", claim=4, worker="w4", count=9)],
    [ack(3, 4, 6, ask=16)],
    10 * MS,
]


class PowerCut(Exception):
    pass


class Outage:
    """A rig, the gateway in front of it and the mirror beside it; the power fails at the writes named."""

    def __init__(self, address_book: Path, cuts: Sequence[tuple[str, int]] = ()) -> None:
        self.address_book = address_book
        self.cuts = list(cuts)
        self.writes = self.lives = 0
        self.asked: list[Operation | Query] = []
        self.unanswered: dict[int, Operation | Query] = {}  # place in `asked`
        self.answers: dict[int, Any] = {}
        self.by_call: dict[int, int] = {}
        self.mirror = Mirror()
        address_book.mkdir(exist_ok=True)
        Disk.create(address_book / "image", IDENTITY)
        self.rig: Rig
        try:
            self._start()
        except PowerCut:
            self._power_up()

    def _before_write(self, _: int) -> None:
        self._maybe_cut("before", self.writes + 1)

    def _after_write(self, _: int) -> None:
        self.writes += 1
        if {("after", self.writes), ("before", self.writes + 1)} & set(self.cuts):
            shutil.rmtree(self.address_book / "image")
            copy_steadily(self.address_book / str(self.lives), self.address_book / "image")
        self._maybe_cut("after", self.writes)

    def _maybe_cut(self, when: str, number: int) -> None:
        if (when, number) in self.cuts:
            self.cuts.remove((when, number))
            raise PowerCut

    def _start(self) -> None:
        """The directory as the last write left it, under a new name. May be cut again."""
        self.lives += 1
        path = self.address_book / str(self.lives)
        shutil.copytree(self.address_book / "image", path)
        rig = Rig(path, before_write=self._before_write, after_write=self._after_write, is_opened=False)
        if self.lives > 1:
            rig.wall_ns, rig.monotonic_ns, rig._last_id = self.rig.wall_ns, self.rig.monotonic_ns, self.rig._last_id
        self.rig = rig
        rig.open()

    def _power_up(self) -> None:
        """Again and again, until the power holds. Then the gateway repeats itself."""
        while True:
            self.rig.kill()
            try:
                self._start()
                self._send({number: _repeated(ask) for number, ask in self.unanswered.items()})
                return
            except PowerCut:
                pass

    def _send(self, asks: dict[int, Operation | Query]) -> None:
        calls = []
        for number, ask in asks.items():
            calls.append(self.rig.call(ask))
            self.by_call[calls[-1].id] = number
        self._turn(calls)

    def _turn(self, calls: list[Any]) -> None:
        rig = self.rig
        rig.turn((GATEWAY, calls))
        for (_, call_id), answer in rig.answers.items():
            if (number := self.by_call.pop(call_id, None)) is not None and number in self.unanswered:
                if isinstance(self.asked[number], Fetch):  # a repeated one is answered in another order
                    answer = sorted(answer, key=lambda claimed: claimed.job_id)
                self.answers[number] = answer
                del self.unanswered[number]

    def play(self, script: Sequence[Step]) -> None:
        for step in script:
            if isinstance(step, list):
                new = {len(self.asked) + place: ask for place, ask in enumerate(step)}
                self.asked += step
                self.unanswered |= new
                try:
                    self._send(new)
                except PowerCut:
                    self._power_up()
                self._follow()
            else:
                self._wait(step)
        self._follow()

    def _wait(self, ns: int) -> None:
        end = self.rig.monotonic_ns + ns
        while (left := end - self.rig.monotonic_ns) > 0:
            self.rig.advance(min(self.rig.sleep_ns(), left))
            try:
                self._turn([])
            except PowerCut:
                self._power_up()

    def _follow(self) -> None:
        """The mirror asks once, and its answer may be lost with the power; it keeps what it has."""
        try:
            self.mirror.take(self.rig.one(self.mirror.question(3)))
        except PowerCut:
            self._power_up()

    def catch_up(self) -> None:
        self.rig.replica.flush()
        for _ in range(100):
            self.mirror.take(self.rig.one(self.mirror.question(3)))
            if not self.mirror.is_scanning and self.mirror.after == self.rig.replica.feed.head:
                return
        raise AssertionError("the mirror never arrives")


def _repeated(ask: Operation | Query) -> Operation | Query:
    return msgspec.structs.replace(ask, is_repeated=True) if isinstance(ask, Fetch) else ask


def replayed(disk: Disk) -> tuple[dict[bytes, bytes], bytes]:
    """What an uninterrupted machine makes of the log on this disk. It is never compacted here: it begins at one."""
    log = RaftLog(disk)
    assert log.first_index == 1
    kv = MemoryKV()
    tables = Tables(kv)
    for entry in log.entries(1, log.last_index, 1 << 40) if log.last_index else []:
        if entry.kind == EntryKind.NORMAL:
            now, operations = operations_of(entry.payload)
            apply_entry(tables, entry.index, entry.term, now, operations)
        else:
            tables.begin(entry.index, entry.term, 0)
    return records_of(tables.overlay), tables.applied.hash


def dump(path: Path) -> dict[bytes, bytes]:
    disk = Disk(path, IDENTITY, False)
    content = dict(disk.scan(b"", b"\xff"))
    disk.close()
    return content


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    """The same script without any cut."""
    outage = Outage(tmp_path_factory.mktemp("calm"))
    outage.play(SCRIPT)
    yield outage
    outage.rig.kill()


def test_the_script_without_a_cut_does_what_it_says(calm: Outage) -> None:
    states = {number: calm.rig.job(number).job.state for number in range(1, 7)}

    assert states == {
        1: State.COMPLETED,
        2: State.DEAD,
        3: State.COMPLETED,
        4: State.COMPLETED,
        5: State.CANCELLED,
        6: State.COMPLETED,
    }
    assert not calm.unanswered
    assert calm.rig.state() == replayed(calm.rig.disk)
    assert [one.job_id for one in calm.answers[5]] == [job_id(2)], "the fetch that waited"


def survive(address_book: Path, calm: Outage, cuts: list[tuple[str, int]]) -> None:
    outage = Outage(address_book, cuts)
    outage.play(SCRIPT)
    rig = outage.rig

    assert outage.cuts == [], "every cut has happened"
    assert outage.answers == calm.answers, "every call has the answer that it would have had without the cut"
    assert rig.state() == replayed(rig.disk), "the state is what the log makes of it"
    assert told(rig.state()[0]) == told(calm.rig.state()[0]), "and byte for byte what it would have been"
    outage.catch_up()
    assert outage.mirror.records == mirrored(rig.replica.tables.overlay), "the feed lost nothing"
    rig.kill()
    shutil.rmtree(address_book)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_power_cut_at_any_write_loses_and_doubles_nothing(tmp_path: Path, calm: Outage, when: str) -> None:
    assert calm.writes > 15

    for number in range(1, calm.writes + 1):
        survive(tmp_path / "run", calm, [(when, number)])


@pytest.mark.parametrize("seed", range(8))
def test_power_that_fails_again_and_again_loses_and_doubles_nothing(tmp_path: Path, calm: Outage, seed: int) -> None:
    dice = random.Random(seed)
    numbers = sorted(dice.sample(range(1, calm.writes), 6))

    survive(tmp_path / "run", calm, [(dice.choice(["before", "after"]), number) for number in numbers])


# LevelDB's own files, cut where a power cut can cut them


class Film:
    """A directory after each of its writes, and what was in it."""

    def __init__(self, address_book: Path) -> None:
        self.address_book = address_book
        self.frames: list[Path] = []

    def __call__(self, number: int) -> None:
        frame = self.address_book / f"frame-{len(self.frames)}"
        copy_steadily(self.address_book / "db", frame)
        self.frames.append(frame)


def copy_steadily(source: Path, target: Path) -> None:
    """LevelDB's own thread may be at work: only a copy during which nothing came or went is an image of a moment."""

    def look() -> list[tuple[str, int]]:
        return sorted((file.name, file.stat().st_size if "MANIFEST" in file.name else 0) for file in source.iterdir())

    for _ in range(1_000):
        try:
            before = look()
            shutil.copytree(source, target)
            if look() == before:
                return
        except (FileNotFoundError, shutil.Error):
            pass
        shutil.rmtree(target, ignore_errors=True)
    raise AssertionError("LevelDB never came to rest")


def filmed(address_book: Path, turns: int, payload_bytes: int) -> Film:
    film = Film(address_book)
    rig = Rig(address_book / "db", after_write=film)
    for number in range(1, turns + 1):
        rig.ask(enqueue(number, payload=bytes([number % 256]) * payload_bytes), fetch("mail", claim=number))
        if number % 3 == 0:
            rig.ask(ack(number - 1, ask=number))
        if number % 7 == 0:
            rig.sleep()
    rig.kill()
    return film


def test_a_write_cut_anywhere_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """Trap 49, and the torn tail: the log of LevelDB ends within the record of the last write."""
    film = filmed(tmp_path, turns=8, payload_bytes=300)
    dice = random.Random(1)
    whole = [dump(frame_copy(frame)) for frame in film.frames]

    for number, (before, after) in enumerate(zip(film.frames, film.frames[1:], strict=False)):
        log, longer = newest_log(before), newest_log(after)
        assert log.name == longer.name
        start, end = log.stat().st_size, longer.stat().st_size
        for at in {start + 1, start + 7, end - 1, *(dice.randrange(start, end) for _ in range(2))}:
            torn = frame_copy(before)
            (torn / log.name).write_bytes(longer.read_bytes()[:at])

            assert dump(torn) == whole[number], f"write {number + 1} cut after {at - start} of {end - start} bytes"
            shutil.rmtree(torn)


def frame_copy(frame: Path) -> Path:
    target = frame.with_name(frame.name + "-copy")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(frame, target)
    return target


def test_a_torn_tail_starts_as_a_replica_at_the_last_whole_write(tmp_path: Path) -> None:
    film = filmed(tmp_path, turns=6, payload_bytes=300)
    dice = random.Random(2)

    for before, after in zip(film.frames[1:], film.frames[2:], strict=False):
        log, longer = newest_log(before), newest_log(after)
        torn = frame_copy(before)
        cut = dice.randrange(log.stat().st_size, longer.stat().st_size)
        (torn / log.name).write_bytes(longer.read_bytes()[:cut])

        rig = Rig(torn)

        assert rig.state() == replayed(rig.disk)
        rig.kill()
        shutil.rmtree(torn)


def test_no_rotation_of_leveldbs_log_leaves_a_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap 48: LevelDB begins a new log file without syncing the old one. The image has the old files as their last
    synced write left them, and the newest whole: state and log must still be a prefix, whatever write rotated."""
    monkeypatch.setattr(leveldb, "_WRITE_BUFFER_BYTES", 64 * 1024)
    monkeypatch.setattr(raft_log, "KEPT_ENTRIES", 1 << 40)
    film = filmed(tmp_path, turns=60, payload_bytes=3_000)
    synced: dict[str, int] = {}  # log file → size after the last write that is known to be synced
    rotations = images = 0

    for number, frame in enumerate(film.frames):
        name = newest_log(frame).name
        is_rotated = bool(synced) and name not in synced
        rotations += is_rotated
        synced[name] = newest_log(frame).stat().st_size
        if not is_rotated and number % 10:
            continue
        image = frame_copy(frame)
        for log in image.glob("*.log"):
            log.write_bytes(log.read_bytes()[: synced[log.name]])
        rig = Rig(image, is_opened=False)
        rig.open(is_first_turn_taken=False)
        applied = rig.replica.tables.applied.index

        rig.turn()

        assert applied <= rig.replica._log.last_index
        assert rig.state() == replayed(rig.disk), f"a hole after write {number}"
        rig.kill()
        shutil.rmtree(image)
        images += 1
    assert rotations >= 3 and images > rotations


def test_every_write_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this the images above would be wishes. One unsynced write is enough for a hole (raft.md, finding 1)."""
    flags: list[bool] = []
    real_open = leveldb._open

    class Watched:
        def __init__(self, db: Any) -> None:
            self._db = db

        def __getattr__(self, name: str) -> Any:
            assert name not in ("put", "delete"), "a write past the batch"
            return getattr(self._db, name)

        def write_batch(self, **options: Any) -> Any:
            flags.append(options.get("sync", False))
            return self._db.write_batch(**options)

    Disk.create(tmp_path / "db", IDENTITY)
    monkeypatch.setattr(leveldb, "_open", lambda path, create: Watched(real_open(path, create)))

    rig = Rig(tmp_path / "db", is_synced=True)
    rig.ask(enqueue(1), fetch("mail"))
    rig.sleep_through(SECOND)
    rig.replica.flush()
    rig.replica.close()

    assert len(flags) >= 4 and all(flags)
