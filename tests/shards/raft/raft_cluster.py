"""A group of replicas in one thread: hosts with a disk, a network of queues, a clock that jumps.

Nothing happens by itself: a test ticks, delivers, syncs, crashes. Every message crosses the wire format. After each
turn the safety properties of Raft are checked over all replicas, so any test may fail on them.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from shards.raft import AnyMessage, EntryKind, HardState, LogEntry, Membership, Options, Persist, Raft, Ready, Restored
from shards.raft.messages import InstallSnapshot, decode, encode

MS = 1_000_000
T = 1000 * MS  # the default minimum election timeout


class State(msgspec.Struct):
    """The machine: the list of what it applied, and a running hash of it."""

    applied: int = 0
    payloads: list[bytes] = []
    hash: bytes = b"\0" * 8

    def copy(self) -> State:
        return State(self.applied, list(self.payloads), self.hash)

    def apply(self, entry: LogEntry) -> None:
        assert entry.index == self.applied + 1, "applied out of order, or twice"
        self.applied = entry.index
        if entry.kind == EntryKind.NORMAL:
            self.payloads.append(entry.payload)
        self.hash = hashlib.blake2b(self.hash + entry.payload, digest_size=8).digest()


class Disk:
    """What survives a crash."""

    def __init__(self, membership: Membership) -> None:
        self.incarnation = 0
        self.hard_state = HardState()
        self.membership = membership
        self.log: dict[int, LogEntry] = {}
        self.snapshot_index = self.snapshot_term = 0
        self.state = State()
        self.reads = 0

    @property
    def last_index(self) -> int:
        return max(self.log, default=self.snapshot_index)

    def term(self, index: int) -> int | None:
        self.reads += 1
        if index == self.snapshot_index:
            return self.snapshot_term
        entry = self.log.get(index)
        return entry.term if entry else None

    def entries(self, low: int, high: int, bytes_max: int) -> list[LogEntry]:
        self.reads += 1
        found = [self.log[low]]
        size = len(found[0].payload)
        for index in range(low + 1, high + 1):
            size += len(self.log[index].payload)
            if size > bytes_max:
                break
            found.append(self.log[index])
        return found

    def write(self, persist: Persist, state: State, membership: Membership) -> None:
        if persist.snapshot is not None:
            assert state.applied == persist.snapshot.index
            self.log.clear()
            self.snapshot_index, self.snapshot_term = persist.snapshot.index, persist.snapshot.term
        if persist.truncate_after is not None:
            for index in [index for index in self.log if index > persist.truncate_after]:
                del self.log[index]
        for entry in persist.entries:
            assert entry.index == self.last_index + 1, "the log on disk has a hole or an overlap"
            self.log[entry.index] = entry
        if persist.hard_state is not None:
            self.hard_state = persist.hard_state
        self.state = state
        self.membership = membership
        assert self.state.applied <= self.last_index, "the state ran ahead of the log"

    def write_history(self, log: list[int], term: int) -> None:
        """Pretend a former life: entries of these terms, nothing committed."""
        for index, entry_term in enumerate(log, 1):
            self.log[index] = LogEntry(index, entry_term, EntryKind.NORMAL, b"%d.%d" % (index, entry_term))
        self.hard_state = HardState(max([term, *log]))

    def compact(self, first_index: int) -> None:
        term = self.term(first_index - 1)
        assert term is not None
        self.snapshot_index, self.snapshot_term = first_index - 1, term
        self.log = {index: entry for index, entry in self.log.items() if index >= first_index}

    def restored(self) -> Restored:
        last = self.last_index
        last_term = self.log[last].term if last in self.log else self.snapshot_term
        return Restored(
            hard_state=self.hard_state,
            membership=self.membership,
            first_index=self.snapshot_index + 1,
            last_index=last,
            last_term=last_term,
            snapshot_index=self.snapshot_index,
            snapshot_term=self.snapshot_term,
            applied=self.state.applied,
        )


class Write(msgspec.Struct):
    persist: Persist
    send_after: list[AnyMessage]
    state: State
    membership: Membership


class Host:
    def __init__(self, cluster: Cluster, name: str, disk: Disk, options: Options) -> None:
        self.cluster = cluster
        self.name = name
        self.disk = disk
        self.options = options
        self.holds_disk = False  # writes stay queued until sync()
        self.holds_apply = False  # committed entries stay queued until apply()
        self.is_up = False
        self.raft: Raft
        self.start()

    def start(self) -> None:
        self.disk.incarnation += 1
        self.writes: deque[Write] = deque()
        self.committed: deque[LogEntry] = deque()
        self.state = self.disk.state.copy()
        self.readies: list[Ready] = []
        self.reads: list[tuple[object, int]] = []
        seed = self.cluster.seed * 1000 + sum(self.name.encode()) * 10 + self.disk.incarnation
        self.raft = Raft(
            self.name,
            self.disk.incarnation,
            self.disk.restored(),
            self.disk,
            self.options,
            seed,
            self.cluster.now_ns,
        )
        self.is_up = True

    def crash(self) -> None:
        """All that is not on disk is gone."""
        self.is_up = False

    def turn(self) -> None:
        """Do what the core asks until it asks for nothing."""
        while self.is_up and (ready := self.raft.ready()) is not None:
            self.readies.append(ready)
            self.cluster.on_ready(self.name, ready)
            self.cluster.send(ready.send_now)
            assert ready.persist is not None or not ready.send_after
            if ready.persist is not None:
                self._queue_write(ready.persist, ready.send_after)
            self.committed.extend(ready.apply)
            self.reads.extend(ready.reads)
            if not self.holds_disk:
                self.sync()
            if not self.holds_apply:
                self.apply()

    def _queue_write(self, persist: Persist, send_after: list[AnyMessage]) -> None:
        if persist.snapshot is not None:
            self.state = self.cluster.states[persist.snapshot.index].copy()
            self.committed.clear()
        self.writes.append(Write(persist, send_after, self.state.copy(), self.raft.membership))

    def sync(self, count: int | None = None) -> None:
        """Let the disk finish its oldest writes."""
        for _ in range(len(self.writes) if count is None else count):
            write = self.writes.popleft()
            self.disk.write(write.persist, write.state, write.membership)
            self.cluster.send(write.send_after)
            self.raft.persisted(write.persist.token)

    def apply(self) -> None:
        while self.committed:
            entry = self.committed.popleft()
            self.cluster.check_entry(entry)
            self.state.apply(entry)
            self.cluster.states[entry.index] = self.state.copy()
            self.raft.applied(entry.index, self.state.hash)

    def log(self) -> list[tuple[int, int]]:
        """(index, term) of every entry, as the core has them."""
        log = self.raft.log
        return [(index, log.term(index) or 0) for index in range(log.first_index, log.last_index + 1)]


class Cluster:
    def __init__(
        self,
        names: Iterable[str],
        options: Options | None = None,
        seed: int = 1,
        settle_in: bool = True,
        logs: dict[str, list[int]] | None = None,  # terms of the entries found on a replica's disk
        terms: dict[str, int] | None = None,  # terms of the hard states, where higher than the log's
    ) -> None:
        self.options = options or Options()
        self.seed = seed
        self.now_ns = 0
        self.queue: deque[AnyMessage] = deque()
        self.dropped: list[AnyMessage] = []
        self.sent: list[AnyMessage] = []
        self.cuts: set[tuple[str, str]] = set()
        self.on_ready: Callable[[str, Ready], None] = lambda name, ready: None
        self.on_deliver: Callable[[AnyMessage, bool], None] = lambda message, arrives: None
        self.filter: Callable[[AnyMessage], bool] | None = None  # False drops the message
        self.states: dict[int, State] = {}
        self.leaders: dict[int, str] = {}  # term → leader
        self.committed: dict[int, tuple[int, bytes]] = {}  # index → (term, payload), once for all
        self.hosts: dict[str, Host] = {}
        membership = Membership(0, tuple(names))
        for name in membership.voters:
            disk = Disk(membership)
            disk.write_history((logs or {}).get(name, []), (terms or {}).get(name, 0))
            self.hosts[name] = Host(self, name, disk, self.options)
        if settle_in:
            self.pass_startup()

    def __getitem__(self, name: str) -> Raft:
        return self.hosts[name].raft

    def join(self, name: str) -> None:
        """A newcomer that knows nothing."""
        self.hosts[name] = Host(self, name, Disk(Membership()), self.options)

    def pass_startup(self) -> None:
        """Let the time pass in which nobody votes, without anybody's timer firing."""
        for host in self.hosts.values():
            host.raft.restart_election_timer()
        self.now_ns += T
        for host in self.hosts.values():
            host.raft.tick(self.now_ns)
            host.raft.restart_election_timer()
            host.turn()
        self.settle()

    # --- time, network

    def send(self, messages: list[AnyMessage]) -> None:
        for message in messages:
            if isinstance(message, InstallSnapshot):
                assert message.index in self.states
            self.sent.append(message)
            is_cut = (message.sender, message.receiver) in self.cuts
            if is_cut or (self.filter is not None and not self.filter(message)):
                self.dropped.append(message)
            else:
                self.queue.append(message)

    def deliver(self, message: AnyMessage) -> None:
        host = self.hosts.get(message.receiver)
        self.on_deliver(message, host is not None and host.is_up)
        if host is None or not host.is_up:
            self.dropped.append(message)
            return
        host.raft.step(decode(encode(message)), self.now_ns)
        host.turn()
        self.check()

    def settle(self, limit: int = 20_000) -> None:
        """Deliver messages in order until all is quiet; time stands still."""
        for host in self.hosts.values():
            host.turn()
        while self.queue:
            limit -= 1
            assert limit > 0, "the network never falls silent"
            self.deliver(self.queue.popleft())
        self.check()

    def tick(self, span_ns: int, *names: str) -> None:
        """Let time pass for all, or for some, and let nothing be delivered."""
        self.now_ns += span_ns
        for host in self.hosts.values():
            if host.is_up and (not names or host.name in names):
                host.raft.tick(self.now_ns)
                host.turn()
        self.check()

    def run(self, span_ns: int, step_ns: int = 50 * MS) -> None:
        """Let time pass in steps, with everything delivered at once."""
        until_ns = self.now_ns + span_ns
        while self.now_ns < until_ns:
            self.tick(min(step_ns, until_ns - self.now_ns))
            self.settle()

    def cut(self, one: str, other: str) -> None:
        self.cuts |= {(one, other), (other, one)}

    def isolate(self, name: str) -> None:
        for other in self.hosts:
            if other != name:
                self.cut(name, other)

    def heal(self) -> None:
        self.cuts.clear()

    # --- what tests do most

    def elect(self, name: str) -> Raft:
        self[name].campaign()
        self.settle()
        assert self[name].is_leader, f"{name} was not elected"
        return self[name]

    def propose(self, name: str, *payloads: bytes) -> list[tuple[int, int]]:
        positions = self[name].propose(list(payloads))
        self.hosts[name].turn()
        return positions

    def crash(self, name: str) -> None:
        self.hosts[name].crash()

    def restart(self, name: str) -> Raft:
        host = self.hosts[name]
        if host.is_up:
            host.crash()
        host.start()
        return host.raft

    def leader(self) -> Raft | None:
        """The leader of the highest term among those who live."""
        leaders = [host.raft for host in self.hosts.values() if host.is_up and host.raft.is_leader]
        return max(leaders, key=lambda raft: raft.term, default=None)

    def payloads(self, name: str) -> list[bytes]:
        return self.hosts[name].state.payloads

    def compact(self, name: str, first_index: int) -> None:
        self[name].compacted(first_index)
        self.hosts[name].disk.compact(first_index)

    def take(self, kind: type, receiver: str | None = None) -> list[AnyMessage]:
        """Take messages of a kind out of the network, to deliver them later or never."""
        taken = [m for m in self.queue if isinstance(m, kind) and receiver in (None, m.receiver)]
        self.queue = deque(m for m in self.queue if m not in taken)
        return taken

    def sent_by(self, sender: str, kind: type) -> list[AnyMessage]:
        return [message for message in self.sent if message.sender == sender and isinstance(message, kind)]

    # --- safety (paper figure 3)

    def check(self) -> None:
        for host in self.hosts.values():
            if not host.is_up:
                continue
            raft = host.raft
            if raft.is_leader:
                known = self.leaders.setdefault(raft.term, host.name)
                assert known == host.name, f"election safety: two leaders in term {raft.term}"
            self._check_committed(raft)

    def _check_committed(self, raft: Raft) -> None:
        log = raft.log
        for index in range(max(log.tail_first, log.commit - 20), log.commit + 1):
            if index < log.first_index:
                continue
            self.check_entry(*log.entries(index, index, 1))

    def check_entry(self, entry: LogEntry) -> None:
        known = self.committed.setdefault(entry.index, (entry.term, entry.payload))
        assert known == (entry.term, entry.payload), f"state machine safety: index {entry.index} differs"
