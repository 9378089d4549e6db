"""The traps of reference/raft.md section 3, by number: what a host can do wrong (43 to 50), and sleeping groups (53).

Disk and machine are the real ones, on LevelDB, wherever the trap is about them.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from raft_cluster import MS, Cluster, T

from corvo.endpoint import Operation
from corvo.engine import apply_entry
from corvo.model.errors import Corrupt
from corvo.model.lifecycle import State
from corvo.ops.jobs.enqueue import Enqueue
from corvo.state import keys
from corvo.state.kv import MemoryKV
from corvo.state.tables import Tables, decode_applied
from corvo.wire import Entry as Payload
from corvo.wire import encode, operations_of
from shards.raft import EntryKind
from shards.raft.messages import LeaderHeartbeat
from shards.storage import leveldb
from shards.storage.leveldb import Disk, DiskFailed
from shards.storage.raft_log import RaftLog
from tests.shards.rig import IDENTITY, Rig, files_end_at, newest_log, records_of
from tests.simulation.admission import Request
from tests.simulation.cluster import Cluster as Simulation
from tests.simulation.network import CLEAR
from tests.simulation.plan import make_plan
from tests.support import strategies
from tests.support.builders import NOW, ack, enqueue, fetch, job_id

HUGE = 1 << 40


def replayed(disk: Disk) -> tuple[dict[bytes, bytes], bytes]:
    """What a machine that was never interrupted makes of the log on this disk."""
    log, tables = RaftLog(disk), Tables(MemoryKV())
    for entry in log.entries(1, log.last_index, HUGE) if log.last_index else []:
        if entry.kind == EntryKind.NORMAL:
            apply_entry(tables, entry.index, entry.term, *operations_of(entry.payload))
        else:
            tables.begin(entry.index, entry.term, 0)
    return records_of(tables.overlay), tables.applied.hash


def work(rig: Rig, turns: int, payload_bytes: int = 20) -> None:
    for number in range(1, turns + 1):
        rig.ask(enqueue(number, payload=b"x" * payload_bytes), fetch("mail", claim=number))
        if number % 3 == 0:
            rig.ask(ack(number - 1, ask=number))
        if number % 4 == 0:
            rig.sleep()


# --- disk and state


def test_trap_43_the_state_lies_on_disk_under_the_index_that_it_has_come_to(tmp_path: Path) -> None:
    images: list[Path] = []

    def keep(number: int) -> None:
        images.append(tmp_path / f"after-{number}")
        shutil.copytree(tmp_path / "db", images[-1])

    rig = Rig(tmp_path / "db", after_write=keep)
    work(rig, 10)
    rig.kill()

    for image in images:
        found = Rig(image, is_opened=False)
        disk = Disk(image, IDENTITY, False)
        raw = disk.get(keys.APPLIED)
        applied = decode_applied(raw).index if raw is not None else 0
        machine = Tables(MemoryKV())
        for entry in RaftLog(disk).entries(1, applied, HUGE) if applied else []:
            now, operations = operations_of(entry.payload) if entry.kind == EntryKind.NORMAL else (0, [])
            apply_entry(machine, entry.index, entry.term, now, operations)
        assert records_of(disk) == records_of(machine.overlay), f"the state on disk is not that of {applied}"
        disk.close()
        found.open()
        assert found.state() == replayed(found.disk)
        found.kill()
    assert len(images) > 10


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x92\x01", encode(Payload(NOW, [b"\xc1"]))])
def test_trap_45_an_entry_that_cannot_be_read_is_fatal_and_never_skipped(raw: bytes) -> None:
    with pytest.raises(Corrupt):
        operations_of(raw)


@settings(max_examples=30)
@given(strategies.logs)
def test_trap_45_every_operation_ends_in_a_result(log: list[tuple[int, list[Operation]]]) -> None:
    tables, now = Tables(MemoryKV()), NOW
    for index, (step_ns, operations) in enumerate(log, 1):
        now += step_ns
        results, _ = apply_entry(tables, index, 1, now, operations)

        assert len(results) == len(operations)


def test_trap_45_an_error_within_the_machine_stops_the_replica_at_the_same_index_every_time(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "db")
    rig.one(enqueue(1))
    rig.sleep()
    before = records_of(rig.disk)
    original = Enqueue.apply

    def poisoned(self: Enqueue, tables: Tables) -> Any:
        if self.jobs[0].id == job_id(2):
            original(self, tables)
            raise ZeroDivisionError
        return original(self, tables)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Enqueue, "apply", poisoned)
        with pytest.raises(ZeroDivisionError):
            rig.ask(enqueue(2), enqueue(3))
        poison = rig.replica.raft.last_index
        assert rig.answers == {key: [State.PENDING] for key in list(rig.answers)[:1]}, "nobody is told anything"
        for _ in range(3):
            rig.kill()
            with pytest.raises(ZeroDivisionError):
                rig.open()
            assert rig.replica.raft.applied_index < poison
            assert records_of(rig.disk) == before, "half an entry is on disk"
    rig.kill()
    rig.open()

    assert rig.job(2).job.state == rig.job(3).job.state == State.PENDING
    assert rig.state() == replayed(rig.disk)
    rig.kill()


def test_trap_46_after_one_failed_write_nothing_is_acknowledged(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "db", is_synced=True)
    rig.one(enqueue(1))
    answered = dict(rig.answers)

    with files_end_at(newest_log(rig.path).stat().st_size + 100), pytest.raises(DiskFailed):
        rig.ask(enqueue(2, payload=b"x" * 10_000))
    with pytest.raises(DiskFailed):  # although there is room again
        rig.ask(enqueue(3))
    assert rig.answers == answered

    rig.kill()
    rig.open()
    assert rig.job(1).job.state == State.PENDING
    assert rig.state() == replayed(rig.disk)
    rig.kill()


def _opened_with_a_flipped_bit(rig: Rig, image: Path, file: Path, at: int) -> Any:
    """The state that the replica finds in a copy of its directory with one bit wrong; None when it refuses to start."""
    shutil.copytree(rig.path, image)
    content = file.read_bytes()
    (image / file.name).write_bytes(content[:at] + bytes([content[at] ^ 0x80]) + content[at + 1 :])
    found: Any = None
    try:
        damaged = Rig(image)
        found = damaged.state()
        damaged.kill()
    except Corrupt:
        pass
    shutil.rmtree(image)
    return found


def _lengths(log: Path) -> list[int]:
    """Where the lengths of the records in a log file of LevelDB are, each behind 4 bytes of checksum."""
    content, paths, at = log.read_bytes(), [], 0
    assert len(content) < 32_768, "one block"
    while at + 7 <= len(content):
        paths.append(at + 5)  # its high byte
        at += 7 + int.from_bytes(content[at + 4 : at + 6], "little")
    return paths


def test_trap_47_a_flipped_bit_stops_the_replica_or_changes_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "db", is_synced=True)
    work(rig, 5)
    rig.sleep()
    state, dice, refused = rig.state(), random.Random(47), 0
    rig.kill()

    for file in (path for path in sorted(rig.path.iterdir()) if not path.name.startswith("LO")):
        paths = set(range(file.stat().st_size)) - set(_lengths(file) if file.suffix == ".log" else [])
        for at in dice.sample(sorted(paths), min(40, len(paths))):
            found = _opened_with_a_flipped_bit(rig, tmp_path / "image", file, at)
            assert found in (None, state), f"{file.name} at {at}: entries are missing and nobody noticed"
            refused += found is None

    assert refused > 60


def test_trap_47_a_record_whose_length_points_behind_the_end_of_the_file_is_noticed(tmp_path: Path) -> None:
    """LevelDB takes it for a write that a power cut has torn."""
    rig = Rig(tmp_path / "db", is_synced=True)
    work(rig, 5)
    rig.kill()
    log = newest_log(rig.path)

    for at in _lengths(log)[:-1]:  # of the last record nobody can tell
        assert _opened_with_a_flipped_bit(rig, tmp_path / "image", log, at) is None, f"records after {at} are gone"


def test_trap_48_no_write_that_rotates_the_log_of_leveldb_leaves_a_hole(tmp_path: Path) -> None:
    """The image of the power cut: every older log file ends where it was last synced, the newest is whole."""
    synced: dict[str, int] = {}  # log file → its size after the last synced write
    images: list[Path] = []

    def after_write(number: int) -> None:
        log = newest_log(tmp_path / "db")
        is_rotated = log.name not in synced
        synced[log.name] = log.stat().st_size
        if is_rotated and len(synced) > 1:
            images.append(tmp_path / f"image-{number}")
            _copy_at_rest(tmp_path / "db", images[-1])
            for old in images[-1].glob("*.log"):
                old.write_bytes(old.read_bytes()[: synced[old.name]])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leveldb, "_WRITE_BUFFER_BYTES", 64 * 1024)
        rig = Rig(tmp_path / "db", is_synced=True, after_write=after_write)
        work(rig, 60, payload_bytes=3_000)
        rig.kill()
        for image in images:
            found = Rig(image)
            assert found.state() == replayed(found.disk), "the state has a hole"
            found.kill()
    assert len(images) >= 3


def _copy_at_rest(source: Path, target: Path) -> None:
    """LevelDB's own thread writes tables out: copy until nothing came or went meanwhile."""

    def look() -> list[tuple[str, int]]:
        return sorted((file.name, file.stat().st_size) for file in source.iterdir() if file.name != "LOG")

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


@pytest.mark.parametrize("broken", [{b"b": "no bytes"}, {b"b": 7}, {"no bytes": b"b"}])
def test_trap_49_a_batch_that_breaks_off_leaves_the_database_as_it_was(tmp_path: Path, broken: Any) -> None:
    Disk.create(tmp_path / "db", IDENTITY)
    disk = Disk(tmp_path / "db", IDENTITY, True)
    disk.write({b"a": b"old"})

    with pytest.raises(TypeError):
        disk.write({b"a": b"new", b"c": b"new"}, broken)

    assert list(disk.scan(b"a", b"z")) == [(b"a", b"old")]
    disk.write({b"d": b"later"})
    disk.close()
    disk = Disk(tmp_path / "db", IDENTITY, True)
    assert list(disk.scan(b"a", b"z")) == [(b"a", b"old"), (b"d", b"later")]
    disk.close()


# --- clients


class Forgetful(Simulation):
    """Loses the first answer to every call."""

    def __init__(self, seed: int) -> None:
        plan = make_plan(seed)
        calls = tuple(line for line in plan.lines if line.what in ("enqueue", "fetch", "ack", "fail", "crash_leader"))
        super().__init__(msgspec.structs.replace(plan, weather=CLEAR, lines=calls))
        self.forgotten: set[int] = set()
        self._tell = self.clients.answered
        self.clients.answered = self.answered  # type: ignore[method-assign]

    def answered(self, request: Request, host: str, answer: tuple[Any, ...]) -> None:
        if answer[0] == "done" and request.client != "auditor" and request.number not in self.forgotten:
            self.forgotten.add(request.number)
        else:
            self._tell(request, host, answer)


@pytest.mark.parametrize("seed", range(3))
def test_trap_50_every_answer_is_lost_once_and_each_request_takes_effect_once(seed: int) -> None:
    cluster = Forgetful(seed)

    cluster.run()  # the reckoning compares answers, jobs and their counts with the model

    assert len(cluster.forgotten) > 10
    assert cluster.coverage["client retries"] >= len(cluster.forgotten)
    assert cluster.coverage["claims"] and cluster.coverage["acks"]


# --- groups that are idle


@pytest.mark.parametrize("seed", range(5))
def test_trap_53_an_idle_group_never_falls_asleep(seed: int) -> None:
    """There is no quiescence: a leader always has a next heartbeat, a follower always a moment to miss it."""
    cluster = Cluster("abc", seed=seed)
    leader = cluster.elect("a")
    cluster.propose("a", b"one")
    cluster.run(60 * T, 100 * MS)
    deadlines = {name: host.raft.deadline_ns() for name, host in cluster.hosts.items()}
    assert all(deadline is not None and deadline <= cluster.now_ns + 2 * T for deadline in deadlines.values())
    cluster.sent.clear()
    cluster.run(T, 100 * MS)
    assert len(cluster.sent_by("a", LeaderHeartbeat)) >= 2 * T // leader.options.heartbeat_ns

    cluster.crash("a")
    cluster.run(2 * leader.options.election_ns + 200 * MS)

    following = cluster.leader()
    assert following is not None and following.id != "a"
    cluster.propose(following.id, b"two")
    cluster.settle()
    assert cluster.payloads(following.id) == [b"one", b"two"]
