"""One process of the cluster: the real Raft and the real machine, and the host's duties of `shards.raft`, in order.

Nothing happens by itself. What arrives waits until the host's next turn, which takes in finished writes, messages,
time and requests, in this order. A paused host has no turns; its disk and its mail go on.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from corvo.engine import apply_entry
from corvo.ops.operation import Operation
from corvo.state.tables import Tables
from corvo.wire import Entry as Payload
from corvo.wire import encode as encode_wire
from corvo.wire import operations_of
from shards import raft
from shards.raft import AnyMessage, Entry, EntryKind, InstallSnapshot, LeaseRead, Persist, Raft, Ready
from shards.upkeep import next_upkeep_ns, upkeep_due
from tests.simulation.clock import MS, HostClock
from tests.simulation.disk import Disk, State, StateMap, Write

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

FLUSH_AFTER_NS = 50 * MS
KEPT_ENTRIES = 4  # so few that snapshots really happen
COMPACT_FROM = 10
LAST_PLACE = 1 << 30  # a read comes after all operations of the entry that it saw


class Request(msgspec.Struct, frozen=True):
    """A client's call as it arrives: an operation, or the id of a job to look at."""

    client: str
    number: int
    ask: Operation | str


class Read(msgspec.Struct, eq=False):
    request: Request
    least: int  # the highest index that was committed anywhere when the read began


class Host:
    raft: Raft
    tables: Tables

    def __init__(self, cluster: Cluster, name: str, disk: Disk, clock: HostClock) -> None:
        self.cluster = cluster
        self.name = name
        self.disk = disk
        self.clock = clock
        self.is_up = False
        self.is_paused = False
        self.disk_delay_ns = cluster.plan.disk_ns  # a sync takes up to this long
        self.apply_delay_ns = 0  # 0: at once
        self.stops_at_lease_ns = 0  # the next lease read finds the process stopped for this long, half-way
        self.next_sync_fails = False
        self.crashes_at = ""  # the next "write" or "install" is cut short by a crash
        self.down_ns = 0  # and this long it stays down
        self._wake_at_ns = -1
        self.start()

    def start(self) -> None:
        self.disk.recover()
        self.is_up, self.is_paused = True, False
        self.inbox: list[tuple[AnyMessage, State | None]] = []
        self.finished: list[Write] = []
        self.requests: list[Request] = []
        self.reports: list[tuple[str, bool]] = []
        self.committed: deque[Entry] = deque()
        self.staged: dict[tuple[int, int], State] = {}
        self.stalled_leases: list[LeaseRead] = []
        self.proposed: dict[int, tuple[int, list[Request]]] = {}
        self.unwritten: dict[bytes, bytes | None] = {}
        self._compact_to = 0
        self._flush_at_ns = 0
        self._upkeep: tuple[int, int] = (0, 0)  # index and term of the latest upkeep proposed
        self._last_sync_ns = 0
        self._applies_later = False
        self.end_before_requests = (0, 0)
        self.live = StateMap.holding(self.disk.state.content())
        self.tables = Tables(self.live)
        self.raft = Raft(
            self.name,
            self.disk.incarnation,
            self.disk.restored(),
            self.disk,
            self.cluster.options,
            self.cluster.seed * 1009 + sum(self.name.encode()) * 31 + self.disk.incarnation,
            self.clock.local_ns(),
        )
        self.cluster.checks.started(self)
        self.wake()

    def crash(self) -> None:
        self.is_up = False
        lost = self.disk.crash(self.cluster.dice)
        self.cluster.checks.disk_changed(self, [])
        self.cluster.coverage["crashes"] += 1
        self.cluster.coverage["lost writes"] += lost
        self.cluster.say(f"{self.name} crashes, {lost} writes lost")

    def pause(self, span_ns: int) -> None:
        self.is_paused = True
        self.cluster.coverage["pauses"] += 1
        self.cluster.events.after(span_ns, self._resume, self.disk.incarnation)

    def _resume(self, incarnation: int) -> None:
        if self.is_up and self.disk.incarnation == incarnation:
            self.is_paused = False
            self.wake()

    # --- what arrives

    def receive(self, message: AnyMessage, state: State | None) -> None:
        self.inbox.append((message, state))
        self.wake(self.cluster.dice.randrange(MS))

    def request(self, request: Request) -> None:
        if self.is_up:
            self.requests.append(request)
            self.wake(self.cluster.dice.randrange(2 * MS))

    def wake(self, span_ns: int = 0) -> None:
        now_ns = self.cluster.events.now_ns
        if not now_ns <= self._wake_at_ns <= now_ns + span_ns:
            self._wake_at_ns = now_ns + span_ns
            self.cluster.events.at(self._wake_at_ns, self._turn_at, self._wake_at_ns)

    def _turn_at(self, when_ns: int) -> None:
        if self.is_up and not self.is_paused and self._wake_at_ns == when_ns:
            self._wake_at_ns = -1
            self.turn()

    # --- the turn

    def turn(self) -> None:
        core, local_ns = self.raft, self.clock.local_ns()
        self._serve_leases(self.stalled_leases)
        self.stalled_leases = []
        finished, self.finished = self.finished, []
        for write in finished:
            self._written(write)
        inbox, self.inbox = self.inbox, []
        for message, state in inbox:
            self._step(message, state, local_ns)
        core.tick(local_ns)
        self._observe()
        for peer, is_ok in self.reports:
            core.report_snapshot(peer, is_ok)
        self.reports.clear()
        self.end_before_requests = (core.log.last_index, core.log.last_term)
        self._take_requests()
        self._serve()
        if self.is_up and not self.is_paused:
            self._maybe_compact()
            self._maybe_flush()
            self._sleep()

    def _observe(self) -> None:
        self.cluster.checks.observe(self)

    def _step(self, message: AnyMessage, state: State | None, local_ns: int) -> None:
        core = self.raft
        self.cluster.checks.arrives(self, message)
        if isinstance(message, InstallSnapshot):
            assert state is not None
            self.staged[(message.index, message.index_term)] = state
        dropped = core.dropped_count
        core.step(message, local_ns)
        self.cluster.checks.arrived(self, message, core.dropped_count > dropped)
        self._observe()

    def _written(self, write: Write) -> None:
        for message in write.send_after:
            self._send(message)
        if write.persist is not None:
            self.raft.persisted(write.persist.token)
            self._observe()

    def _send(self, message: AnyMessage) -> None:
        state: State | None = None
        if isinstance(message, InstallSnapshot):
            self._collect()
            state = self.live.content()
            applied = self.tables.applied
            message = msgspec.structs.replace(
                message, index=applied.index, index_term=applied.term, membership=self.raft.membership
            )
            self.cluster.coverage["snapshots sent"] += 1
        self.cluster.checks.sent(self, message)
        self.cluster.network.send(message, state)

    def _serve(self) -> None:
        """Do what the core asks until it asks for nothing."""
        while self.is_up and (ready := self.raft.ready()) is not None:
            self.cluster.checks.ready(self, ready)
            for message in ready.send_now:
                self._send(message)
            assert ready.persist is not None or not ready.send_after
            if ready.persist is not None:
                self._hand_to_disk(ready.persist, ready.send_after)
            self.committed.extend(ready.apply)
            self._serve_reads(ready)
            if self.apply_delay_ns:
                self._apply_later()
            else:
                self.apply()

    # --- the disk

    def _collect(self) -> None:
        """What the machine changed since the last batch goes into the next one."""
        changes = self.tables.take_writes()
        self.live.write(changes)
        self.unwritten.update(changes)

    def _hand_to_disk(self, persist: Persist, send_after: list[AnyMessage]) -> None:
        installs: State | None = None
        if persist.snapshot is not None:
            installs = self.staged.pop((persist.snapshot.index, persist.snapshot.term))
            self.live = StateMap.holding(installs)
            self.tables = Tables(self.live)
            self.unwritten = {}
            self.committed.clear()
            self.cluster.checks.installed(self)
        changes: dict[bytes, bytes | None] = {}
        if not persist.is_empty:
            self._collect()
            changes, self.unwritten = self.unwritten, {}
        self._queue(Write(persist, send_after, changes, self.raft.membership, installs))

    def _maybe_flush(self) -> None:
        if self.disk.applied_index == self.tables.applied.index or self.disk.pending:
            self._flush_at_ns = 0
            return
        now_ns = self.cluster.events.now_ns
        if not self._flush_at_ns:
            self._flush_at_ns = now_ns + FLUSH_AFTER_NS
        elif now_ns >= self._flush_at_ns:
            self._flush_at_ns = 0
            self._collect()
            changes, self.unwritten = self.unwritten, {}
            self._queue(Write(None, [], changes, self.raft.membership))

    def _queue(self, write: Write) -> None:
        if not write.is_empty and self._compact_to:
            write.compact_to, self._compact_to = self._compact_to, 0
        self.disk.pending.append(write)
        events = self.cluster.events
        delay_ns = 0 if write.is_empty else self.cluster.dice.randrange(self.disk_delay_ns)
        self._last_sync_ns = max(self._last_sync_ns, events.now_ns + delay_ns)
        events.at(self._last_sync_ns, self._sync, self.disk.life)
        is_due = self.crashes_at == "write" or (self.crashes_at == "install" and write.installs is not None)
        if is_due and not write.is_empty:
            self.crashes_at = ""
            span_ns = self.cluster.dice.randrange(max(self._last_sync_ns - events.now_ns, 1))
            events.after(span_ns, self.cluster.crash, self, self.down_ns)

    def _sync(self, life: int) -> None:
        if life != self.disk.life:
            return  # the power went before
        if self.next_sync_fails and not self.disk.pending[0].is_empty:
            self.next_sync_fails = False
            self.sync_failed()
            return
        write, gone = self.disk.sync_next()
        self.cluster.checks.disk_changed(self, gone)
        self.finished.append(write)
        self.wake()

    def sync_failed(self) -> None:
        """Nobody knows what is on the disk now: the process ends, and reads it anew."""
        self.cluster.coverage["failed syncs"] += 1
        self.cluster.say(f"{self.name} fails to sync")
        self.crash()

    def _maybe_compact(self) -> None:
        applied, first = self.disk.applied_index, self.raft.log.first_index
        if applied - first < COMPACT_FROM:
            return
        to = min(self.raft.compactable_index(), applied - KEPT_ENTRIES) + 1
        if to > first and to - 1 >= self.disk.snapshot_index:
            self.raft.compacted(to)
            self._compact_to = to
            self.cluster.coverage["compactions"] += 1

    # --- the machine

    def _apply_later(self) -> None:
        if self.committed and not self._applies_later:
            self._applies_later = True
            self.cluster.events.after(max(self.apply_delay_ns, MS), self._apply_at, self.disk.incarnation)

    def _apply_at(self, incarnation: int) -> None:
        if incarnation != self.disk.incarnation or not self.is_up:
            return
        self._applies_later = False
        if self.is_paused:
            self._apply_later()
            return
        self.apply()
        self.wake()

    def apply(self) -> None:
        while self.committed:
            entry = self.committed.popleft()
            results = self.apply_one(entry)
            self.cluster.checks.applied(self, entry)
            self.raft.applied(entry.index, self.tables.applied.hash)
            self._observe()
            term, requests = self.proposed.pop(entry.index, (0, []))
            if term == entry.term and requests:
                start = len(results) - len(requests)
                for place, request in enumerate(requests, start):
                    self._reply(request, ("done", results[place], entry.index, place))

    def apply_one(self, entry: Entry) -> list[Any]:
        if entry.kind != EntryKind.NORMAL:
            self.tables.begin(entry.index, entry.term, 0)
            return []
        now, operations = operations_of(entry.payload)
        results, _ = apply_entry(self.tables, entry.index, entry.term, now, operations)
        return results

    # --- clients

    def _reply(self, request: Request, answer: tuple[Any, ...]) -> None:
        clients = self.cluster.clients
        self.cluster.network.carry(self.name, request.client, clients.answered, request, self.name, answer)

    def _take_requests(self) -> None:
        requests, self.requests = self.requests, []
        operations = [request for request in requests if not isinstance(request.ask, str)]
        reads = [request for request in requests if isinstance(request.ask, str)]
        wall_ns = self.clock.wall_ns()
        due: list[Operation] = []
        if self.raft.is_leader:
            index, term = self._upkeep
            if index <= self.tables.applied.index or term != self.raft.term:
                due = upkeep_due(self.tables, wall_ns)
            if operations or due:
                self._propose(wall_ns, due, operations)
        else:
            for request in operations:
                self._reply(request, ("elsewhere", self.raft.leader_id))
        for request in reads:
            self._read(Read(request, self.cluster.checks.commit_index))

    def _propose(self, wall_ns: int, due: list[Operation], requests: list[Request]) -> None:
        asks = [*due, *(request.ask for request in requests)]
        payload = encode_wire(Payload(wall_ns, [encode_wire(ask) for ask in asks]))
        try:
            ((index, term),) = self.raft.propose([payload])
        except raft.Refused:
            for request in requests:
                self._reply(request, ("elsewhere", None))
            return
        self.cluster.checks.proposed_at[(index, term)] = self.cluster.events.count
        self.proposed[index] = (term, requests)
        if due:
            self._upkeep = (index, term)
        self._observe()

    def _read(self, read: Read) -> None:
        try:
            self.raft.read_index(read)
        except raft.Refused:
            self._reply(read.request, ("elsewhere", self.raft.leader_id))

    def _serve_reads(self, ready: Ready) -> None:
        for context, index in ready.reads:
            assert isinstance(context, Read)
            self.cluster.coverage["reads"] += 1
            self._answer_read(context, index)
        for context in ready.reads_refused:
            assert isinstance(context, Read)
            self._reply(context.request, ("elsewhere", self.raft.leader_id))
        if ready.lease_reads and self.stops_at_lease_ns:
            span_ns, self.stops_at_lease_ns = self.stops_at_lease_ns, 0
            self.stalled_leases = list(ready.lease_reads)
            self.cluster.say(f"{self.name} is stopped in the middle of a lease read")
            self.pause(span_ns)
        else:
            self._serve_leases(ready.lease_reads)

    def _serve_leases(self, leases: list[LeaseRead]) -> None:
        for lease in leases:
            assert isinstance(lease.context, Read)
            if self.is_lease_over(lease):
                self._read(lease.context)
            else:
                self.cluster.coverage["lease reads"] += 1
                self._answer_read(lease.context, lease.index)

    def is_lease_over(self, lease: LeaseRead) -> bool:
        """Asked after reading."""
        return self.clock.local_ns() >= lease.until_ns

    def _answer_read(self, read: Read, index: int) -> None:
        self.cluster.checks.read(self, read.least, index)
        assert isinstance(read.request.ask, str)
        job = self.tables.find_job(read.request.ask)
        seen = ("absent", 0) if job is None else (job.state.name.lower(), job.lease_token)
        self._reply(read.request, ("done", seen, self.tables.applied.index, LAST_PLACE))

    # --- sleeping

    def _sleep(self) -> None:
        events, clock = self.cluster.events, self.clock
        until_ns = events.now_ns + 3_600_000 * MS
        deadline = self.raft.deadline_ns()
        if deadline is not None:
            until_ns = min(until_ns, clock.true_ns(deadline))
        if self._flush_at_ns:
            until_ns = min(until_ns, self._flush_at_ns)
        if self.raft.is_leader and self._upkeep[0] <= self.tables.applied.index:
            wall_ns = clock.wall_ns()
            until_ns = min(until_ns, events.now_ns + max(next_upkeep_ns(self.tables, wall_ns) - wall_ns, MS))
        self.wake(max(until_ns - events.now_ns, 1))
