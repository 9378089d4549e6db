"""What clients ask of a simulated host: one entry for all that waits, and reads by the word of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from corvo.endpoint import Operation
from corvo.wire import Entry as Payload
from corvo.wire import encode
from shards.raft import LeaseRead, LogEntry, RaftRefusal, Ready
from shards.upkeep import next_upkeep_ns, upkeep_due
from tests.simulation.clock import MS

if TYPE_CHECKING:
    from tests.simulation.host import Host

LAST_PLACE = 1 << 30  # a read comes after all operations of the entry that it saw


class Request(msgspec.Struct, frozen=True):
    """A client's call as it arrives: an operation, or the id of a job to look at."""

    client: str
    number: int
    ask: Operation | str


class Read(msgspec.Struct, eq=False):
    request: Request
    least: int  # the highest index that was committed anywhere when the read began


class Admission:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._cluster = host.cluster
        self.requests: list[Request] = []
        self._proposed: dict[int, tuple[int, list[Request]]] = {}  # index → term, requests in the order of the entry
        self._upkeep = (0, 0)  # index and term of the latest upkeep proposed
        self._stalled_leases: list[LeaseRead] = []

    # --- operations

    def take_requests(self) -> None:
        host, core = self._host, self._host.raft
        requests, self.requests = self.requests, []
        operations = [request for request in requests if not isinstance(request.ask, str)]
        reads = [request for request in requests if isinstance(request.ask, str)]
        wall_ns = host.clock.wall_ns()
        due: list[Operation] = []
        if core.is_leader:
            index, term = self._upkeep
            if index <= host.tables.applied.index or term != core.term:
                due = upkeep_due(host.tables, wall_ns)
            if operations or due:
                self._propose(wall_ns, due, operations)
        else:
            for request in operations:
                self._reply(request, ("elsewhere", core.leader_id))
        for request in reads:
            self._read(Read(request, self._cluster.checks.commit_index))

    def _propose(self, wall_ns: int, due: list[Operation], requests: list[Request]) -> None:
        asks = [*due, *(request.ask for request in requests)]
        payload = encode(Payload(wall_ns, [encode(ask) for ask in asks]))
        try:
            ((index, term),) = self._host.raft.propose([payload])
        except RaftRefusal:
            for request in requests:
                self._reply(request, ("elsewhere", None))
            return
        self._cluster.checks.proposed_at[(index, term)] = self._cluster.events.count
        self._proposed[index] = (term, requests)
        if due:
            self._upkeep = (index, term)
        self._host.observe()

    def answer(self, entry: LogEntry, results: list[Any]) -> None:
        """The entry is applied: those who asked for it are told."""
        term, requests = self._proposed.pop(entry.index, (0, []))
        if term == entry.term and requests:
            start = len(results) - len(requests)
            for place, request in enumerate(requests, start):
                self._reply(request, ("done", results[place], entry.index, place))

    def next_upkeep_ns(self) -> int | None:
        """How long until the leader's timers ask for an entry."""
        host = self._host
        if not host.raft.is_leader or self._upkeep[0] > host.tables.applied.index:
            return None
        wall_ns = host.clock.wall_ns()
        return max(next_upkeep_ns(host.tables, wall_ns) - wall_ns, MS)

    def _reply(self, request: Request, answer: tuple[Any, ...]) -> None:
        clients, name = self._cluster.clients, self._host.name
        self._cluster.network.carry(name, request.client, clients.answered, request, name, answer)

    # --- reads

    def _read(self, read: Read) -> None:
        try:
            self._host.raft.read_index(read)
        except RaftRefusal:
            self._reply(read.request, ("elsewhere", self._host.raft.leader_id))

    def serve_reads(self, ready: Ready) -> None:
        host = self._host
        for context, index in ready.reads:
            assert isinstance(context, Read)
            self._cluster.coverage["reads"] += 1
            self._answer_read(context, index)
        for context in ready.reads_refused:
            assert isinstance(context, Read)
            self._reply(context.request, ("elsewhere", host.raft.leader_id))
        if ready.lease_reads and host.stops_at_lease_ns:
            span_ns, host.stops_at_lease_ns = host.stops_at_lease_ns, 0
            self._stalled_leases = list(ready.lease_reads)
            self._cluster.say(f"{host.name} is stopped in the middle of a lease read")
            host.pause(span_ns)
        else:
            self._serve_leases(ready.lease_reads)

    def serve_stalled_leases(self) -> None:
        leases, self._stalled_leases = self._stalled_leases, []
        self._serve_leases(leases)

    def _serve_leases(self, leases: list[LeaseRead]) -> None:
        for lease in leases:
            assert isinstance(lease.context, Read)
            if self.is_lease_over(lease):
                # Not at once: until it has looked at the clock, the core would say the same again.
                self.requests.append(lease.context.request)
                self._host.wake()
            else:
                self._cluster.coverage["lease reads"] += 1
                self._answer_read(lease.context, lease.index)

    def is_lease_over(self, lease: LeaseRead) -> bool:
        """Asked after reading."""
        return self._host.clock.local_ns() >= lease.until_ns

    def _answer_read(self, read: Read, index: int) -> None:
        host = self._host
        self._cluster.checks.read(host, read.least, index)
        assert isinstance(read.request.ask, str)
        job = host.tables.find_job(read.request.ask)
        seen = ("absent", 0) if job is None else (job.state.name.lower(), job.lease_token)
        self._reply(read.request, ("done", seen, host.tables.applied.index, LAST_PLACE))
