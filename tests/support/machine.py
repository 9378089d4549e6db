"""One shard's machine in memory: log, map, tables, and the questions that tests ask of them.

Every operation goes through the bytes of an entry, as in a replica, so a field that does not survive encoding fails
here. `flush` stores what was applied; `restart` is a crash: what was not flushed is applied again from the log.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from corvo import wire
from corvo.endpoint import Operation
from corvo.engine import apply_entry
from corvo.model.events import Event
from corvo.model.job import Job, Priority, Queue, decode_job, decode_queue, encode
from corvo.model.lifecycle import State
from corvo.rules.cascades import run_cascades
from corvo.state import keys
from corvo.state.event_log import decode_page
from corvo.state.kv import MemoryKV
from corvo.state.tables import PURGE_ALARM, Changes, Tables
from tests.support.builders import NOW, job_id

TERM = 1
INDEX_PREFIXES = (keys.ACTIVE, b"p|", b"qa|", b"r|", b"s|", keys.DUE)  # where a job is filed by its state


class Machine:
    def __init__(self, shard: int = 0, shard_count: int = 1) -> None:
        self.kv = MemoryKV()
        self._place = (shard, shard_count)
        self.tables = Tables(self.kv, *self._place)
        self.log: list[bytes] = []
        self.now = NOW
        self.changes = Changes({}, {}, set())

    def apply(self, *operations: Operation, at: int | None = None) -> list[Any]:
        """One entry with these operations; time stands still unless `at` moves it."""
        self.now = self.now if at is None else at
        self.log.append(wire.encode(wire.Entry(self.now, [wire.encode(operation) for operation in operations])))
        return self.replay(self.log[-1], len(self.log))

    def one(self, operation: Operation, at: int | None = None) -> Any:
        return self.apply(operation, at=at)[0]

    def replay(self, payload: bytes, index: int) -> list[Any]:
        now, operations = wire.operations_of(payload)
        results, self.changes = apply_entry(self.tables, index, TERM, now, operations)
        return results

    @contextmanager
    def by_hand(self, at: int | None = None) -> Iterator[Tables]:
        """An entry of changes that no operation makes. The log has an empty one in its place: flush, then restart."""
        self.now = self.now if at is None else at
        self.log.append(wire.encode(wire.Entry(self.now, [])))
        self.tables.begin(len(self.log), TERM, self.now)
        yield self.tables
        run_cascades(self.tables)
        self.changes = self.tables.seal()

    def follow(self, log: list[bytes]) -> None:
        """Apply what of this log is new here, as a replica does after a start or a snapshot."""
        for index, payload in enumerate(log, 1):
            if index > self.tables.applied.index:
                self.replay(payload, index)
        self.log = list(log)

    def flush(self) -> None:
        self.kv.write(self.tables.take_writes())

    def restart(self) -> None:
        self.tables = Tables(self.kv, *self._place)
        self.follow(self.log)

    # What tests look at

    def records(self) -> dict[bytes, bytes]:
        """Every byte of replicated state, flushed or not."""
        found: dict[bytes, bytes] = {}
        for prefix in keys.STATE_PREFIXES:
            found.update(self.tables.overlay.scan(prefix, keys.prefix_end(prefix)))
        return found

    def state(self) -> tuple[dict[bytes, bytes], bytes]:
        """The records and the marker: what must be equal on replicas that applied the same entries."""
        return self.records(), encode(self.tables.applied)

    def jobs(self) -> list[Job]:
        return [decode_job(value) for _, value in self._scan(keys.JOBS)]

    def queues(self) -> list[Queue]:
        return [decode_queue(value) for _, value in self._scan(keys.QUEUES)]

    def job(self, job: int | str = 1) -> Job:
        return self.tables.require_job(job_id(job))

    def queue(self, name: str = "mail") -> Queue:
        queue = self.tables.find_queue(name)
        assert queue is not None, f"no queue {name}"
        return queue

    def _scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.tables.overlay.scan(prefix, keys.prefix_end(prefix))

    def check(self) -> None:
        """What is true of every state that operations can lead to."""
        jobs = self.jobs()
        assert self._index_keys() == {key for job in jobs for key in index_keys_of(job)}
        for queue in self.queues():
            inside = [job for job in jobs if job.queue == queue.name]
            assert queue.counts == [sum(job.state == state for job in inside) for state in State]
            assert queue.payload_bytes == sum(len(job.payload) for job in inside)
            for job in inside:
                assert job.state != State.PENDING or job.position > queue.cursors[job.priority]
            assert queue == self.tables.find_queue(queue.name)
        for job in jobs:
            assert job == self.tables.find_job(job.id), "the cached job is not the stored one"
        active = [job for job in jobs if job.state == State.ACTIVE]
        assert len(self.tables.leases) == len(active)
        ends = [job.lease_expires_at for job in active]
        assert self.tables.leases.next_end(max(ends, default=0)) == min(ends, default=None)
        assert len({job.position for job in jobs if job.position}) == sum(job.position > 0 for job in jobs)

    def _index_keys(self) -> set[bytes]:
        return {key for prefix in INDEX_PREFIXES for key, _ in self._scan(prefix)}


def index_keys_of(job: Job) -> set[bytes]:
    """Where a job must be filed, and nowhere else."""
    match job.state:
        case State.PENDING:
            return {keys.pending(job.queue, Priority(job.priority), job.position, job.id)}
        case State.ACTIVE:
            return {keys.active(job.queue, job.id)}
        case State.SCHEDULED:
            return {keys.scheduled(job.queue, job.due_at, job.id), keys.due(keys.DUE, job.due_at, job.id)}
        case State.RETRYING:
            return {keys.retrying(job.queue, job.due_at, job.id), keys.due(keys.DUE, job.due_at, job.id)}
    return set()


class Told(NamedTuple):
    """A state without what depends on how operations were cut into entries."""

    records: dict[bytes, bytes]
    events: list[tuple[int, Event]]  # moment, event, in the order of telling
    purges: list[tuple[int, str]]  # moment of forgetting, job


def told(records: dict[bytes, bytes]) -> Told:
    """Events and alarms of retention are stored a page, a list, for each entry; here they stand one by one."""
    rest, events, purges = dict(records), [], []
    for key, value in sorted(records.items()):
        if key.startswith(keys.EVENTS):
            page = decode_page(value)
            events += [(page.at, event) for event in page.events]
        elif key.startswith(keys.ALARMS) and keys.due_parts(keys.ALARMS, key)[1].startswith(PURGE_ALARM):
            due_at, _ = keys.due_parts(keys.ALARMS, key)
            purges += [(due_at, job) for job in msgspec.msgpack.decode(value, type=list[str])]
        else:
            continue
        del rest[key]
    return Told(rest, events, sorted(purges))


@contextmanager
def nothing_changes(machine: Machine) -> Iterator[None]:
    """No byte of the state, nor the hash over all changes, nor a record in memory, differs afterwards."""
    before, hash_before = machine.records(), machine.tables.applied.hash
    yield
    assert machine.records() == before
    assert machine.tables.applied.hash == hash_before
    machine.check()
