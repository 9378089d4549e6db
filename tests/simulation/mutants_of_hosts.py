"""Deliberate bugs of the host, its disk and its machine, and of clients."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import msgspec

from corvo.model.lifecycle import State
from corvo.ops.jobs import ack as ack_module
from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.fetch import Fetch
from corvo.ops.jobs.lease import lost
from corvo.state import keys
from corvo.wire import operations_of
from shards.raft import LogEntry
from tests.simulation import host as host_module
from tests.simulation.admission import Admission
from tests.simulation.clock import MS
from tests.simulation.disk import Disk, Write
from tests.simulation.host import Host
from tests.simulation.mutation import replaced
from tests.simulation.workload import Clients
from tests.support.builders import enqueue, job_id


def trap_36_snapshot_and_log_are_written_apart() -> AbstractContextManager[None]:
    original = Host._queue

    def queue(self: Host, write: Write) -> None:
        if write.installs is not None:
            self.disk.write_state(Write(None, [], {}, write.membership, write.installs))
        original(self, write)

    return replaced(Host, _queue=queue)


def trap_43_state_without_its_marker() -> AbstractContextManager[None]:
    original = Disk.write_state

    def write_state(self: Disk, write: Write) -> None:
        if write.persist is None:  # a flush
            write.changes.pop(keys.APPLIED, None)
        original(self, write)

    return replaced(Disk, write_state=write_state)


def trap_44_applies_by_its_own_clock() -> AbstractContextManager[None]:
    original = Host.apply_one

    def apply_one(self: Host, entry: Any) -> list[Any]:
        with _own_clock(self.clock.wall_ns()):
            return original(self, entry)

    return replaced(Host, apply_one=apply_one)


def _own_clock(wall_ns: int) -> AbstractContextManager[None]:
    def with_own_clock(payload: bytes) -> Any:
        return wall_ns // (100 * MS) * (100 * MS), operations_of(payload)[1]

    return replaced(host_module, operations_of=with_own_clock)


def trap_46_goes_on_after_a_failed_sync() -> AbstractContextManager[None]:
    def sync_failed(self: Host) -> None:
        self.finished.append(self.disk.pending.popleft())
        self.wake()

    return replaced(Host, sync_failed=sync_failed)


def trap_47_uses_a_torn_write() -> AbstractContextManager[None]:
    original = Disk.recover

    def recover(self: Disk) -> None:
        torn = self.torn
        if torn is not None and torn.persist is not None:
            for entry in torn.persist.entries:  # what was to be removed is not, nor is the hard state there
                self.log[entry.index] = entry
                self.last_index = max(self.last_index, entry.index)
            self.state.write(dict(list(torn.changes.items())[: len(torn.changes) // 2]))
        original(self)

    return replaced(Disk, recover=recover)


def trap_48_a_hole_in_the_state() -> AbstractContextManager[None]:
    original = Disk.crash

    def crash(self: Disk, dice: Any) -> int:
        newest = [write for write in self.pending if write.changes][-1:]
        lost = original(self, dice)
        for write in newest:  # the last batch survives, one before it does not
            changes = {key: value for key, value in write.changes.items() if key != keys.APPLIED}
            self.state.write(changes)
        return lost

    return replaced(Disk, crash=crash)


def trap_50_a_repeated_request_makes_another_job() -> AbstractContextManager[None]:
    original = Clients.repeated

    def repeated(self: Clients, task: Any) -> Any:
        if not isinstance(task.ask, str | Fetch) and hasattr(task.ask, "jobs"):
            (new,) = task.ask.jobs
            return enqueue(msgspec.structs.replace(new, id=job_id(100_000 + task.number * 20 + task.tries)))
        return original(self, task)

    return replaced(Clients, repeated=repeated)


def trap_50_a_repeated_fetch_claims_more() -> AbstractContextManager[None]:
    original = Fetch.apply

    def apply(self: Fetch, tables: Any) -> Any:
        return original(msgspec.structs.replace(self, is_repeated=False), tables)

    return replaced(Fetch, apply=apply)


def trap_50_an_ack_counts_under_another_workers_lease() -> AbstractContextManager[None]:
    return replaced(ack_module, holds=lambda job, lease_token: job.state == State.ACTIVE)


def trap_50_a_repeated_ack_is_refused() -> AbstractContextManager[None]:
    original = Ack._ack

    def settle(self: Ack, tables: Any, item: Any) -> Any:
        job = tables.find_job(item.job_id)
        if job is not None and job.state == State.COMPLETED:
            return lost(tables, job, item.job_id, item.lease_token)
        return original(self, tables, item)

    return replaced(Ack, _ack=settle)


def trap_50_answers_for_an_entry_of_another_leader() -> AbstractContextManager[None]:
    """What was proposed at an index is not what is committed there, unless the terms agree."""

    def answer(self: Admission, entry: LogEntry, results: list[Any]) -> None:
        _, requests = self._proposed.pop(entry.index, (0, []))
        start = max(len(results) - len(requests), 0)
        for place, (request, result) in enumerate(zip(requests, results[start:], strict=False), start):
            self._reply(request, ("done", result, entry.index, place))

    return replaced(Admission, answer=answer)
