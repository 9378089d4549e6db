"""One process of the cluster: the real Raft and the real machine, and the host's duties of `shards.raft`, in order.

Nothing happens by itself. What arrives waits until the host's next turn, which takes in finished writes, messages,
time and requests, in this order. A paused host has no turns; its disk and its mail go on.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from corvo.engine import apply_entry
from corvo.state.tables import Tables
from corvo.wire import operations_of
from shards.raft import AnyMessage, EntryKind, InstallSnapshot, LogEntry, Persist, Raft
from tests.simulation.admission import Admission, Request
from tests.simulation.clock import MS, HostClock
from tests.simulation.disk import Disk, State, StateMap, Write

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

FLUSH_AFTER_NS = 50 * MS
WAKE_NS = 6 * MS  # within which a process that something arrives for has its turn
COMPACT_FROM = 6  # entries more than are kept


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
        self.stops_in_turn_ns = 0  # so does the next turn as leader, after it has looked at the clock
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
        self.admission = Admission(self)
        self.reports: list[tuple[str, bool]] = []
        self.committed: deque[LogEntry] = deque()
        self.staged: dict[tuple[int, int], State] = {}
        self.unwritten: dict[bytes, bytes | None] = {}
        self._compact_to = 0
        self._flush_at_ns = 0
        self._last_sync_ns = 0
        self._applies_later = False
        self._is_in_turn = False
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

    def heal(self) -> None:
        self.disk_delay_ns, self.apply_delay_ns = 3 * MS, 0
        self.crashes_at = ""
        self.stops_at_lease_ns = self.stops_in_turn_ns = 0
        self.next_sync_fails = False

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
        self.wake(self.cluster.dice.randrange(WAKE_NS))

    def request(self, request: Request) -> None:
        if self.is_up:
            self.admission.requests.append(request)
            self.wake(self.cluster.dice.randrange(WAKE_NS))

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
        if not self._is_in_turn:
            self._take_in()
            if self.stops_in_turn_ns and self.raft.is_leader:
                self._stop_in_turn()
                return
        self._is_in_turn = False
        self.end_before_requests = (self.raft.log.last_index, self.raft.log.last_term)
        self.admission.take_requests()
        self._serve()
        if self.is_up and not self.is_paused:
            self._maybe_compact()
            self._maybe_flush()
            self._sleep()

    def _take_in(self) -> None:
        core, local_ns = self.raft, self.clock.local_ns()
        self.admission.serve_stalled_leases()
        finished, self.finished = self.finished, []
        for write in finished:
            self._written(write)
        inbox, self.inbox = self.inbox, []
        for message, state in inbox:
            self._step(message, state, local_ns)
        core.tick(local_ns)
        self.observe()
        for peer, is_ok in self.reports:
            core.report_snapshot(peer, is_ok)
        self.reports.clear()

    def _stop_in_turn(self) -> None:
        """The core believes in the time of its tick; requests that come meanwhile are served by that time."""
        span_ns, self.stops_in_turn_ns = self.stops_in_turn_ns, 0
        self._is_in_turn = True
        self.cluster.say(f"{self.name} is stopped in the middle of a turn")
        self.pause(span_ns)

    def observe(self) -> None:
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
        self.observe()

    def _written(self, write: Write) -> None:
        for message in write.send_after:
            self._send(message)
        if write.persist is not None:
            self.raft.persisted(write.persist.token)
            self.observe()

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
            self.admission.serve_reads(ready)
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
            events.after(span_ns, self.cluster.faults.crash, self, self.down_ns)

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
        self.wake(self.cluster.dice.randrange(WAKE_NS))

    def sync_failed(self) -> None:
        """Nobody knows what is on the disk now: the process ends, and reads it anew."""
        self.cluster.coverage["failed syncs"] += 1
        self.cluster.say(f"{self.name} fails to sync")
        self.crash()

    def _maybe_compact(self) -> None:
        applied, first = self.disk.applied_index, self.raft.log.first_index
        kept = self.cluster.plan.kept_entries
        if applied - first < (1 if self.cluster.plan.is_about_snapshots else kept + COMPACT_FROM):
            return
        to = min(self.raft.compactable_index(), applied - kept) + 1
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
            self.observe()
            self.admission.answer(entry, results)

    def apply_one(self, entry: LogEntry) -> list[Any]:
        if entry.kind != EntryKind.NORMAL:
            self.tables.begin(entry.index, entry.term, 0)
            return []
        now, operations = operations_of(entry.payload)
        results, _ = apply_entry(self.tables, entry.index, entry.term, now, operations)
        return results

    # --- sleeping

    def _sleep(self) -> None:
        events, clock = self.cluster.events, self.clock
        until_ns = events.now_ns + 3_600_000 * MS
        deadline = self.raft.deadline_ns()
        if deadline is not None:
            until_ns = min(until_ns, clock.true_ns(deadline))
        if self._flush_at_ns:
            until_ns = min(until_ns, self._flush_at_ns)
        if (upkeep_ns := self.admission.next_upkeep_ns()) is not None:
            until_ns = min(until_ns, events.now_ns + upkeep_ns)
        self.wake(max(until_ns - events.now_ns, 1))
