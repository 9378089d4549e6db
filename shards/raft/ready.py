"""What the core asks of its host, as values, and the outbox in which it collects them.

The order in which a host must do things is written beside each field. The pending persists are kept here as well: a
token is the promise "once you tell me that this is on disk, I may count it", and what may be counted shrinks when the
log is cut before the disk answers.
"""

from __future__ import annotations

import enum
from collections import deque

import msgspec

from shards.raft.membership import Membership
from shards.raft.messages import AnyMessage, HardState, LogEntry


class Role(enum.Enum):
    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class RoleChange(msgspec.Struct, frozen=True):
    """The leader, as far as this replica knows; for hosts that must send clients elsewhere."""

    role: Role
    term: int
    leader_id: str | None
    config_id: int


class SnapshotMarker(msgspec.Struct, frozen=True):
    """Make the snapshot that was received for this point the replica's state, and its log begin after it."""

    index: int
    term: int
    membership: Membership


class Persist(msgspec.Struct, frozen=True, gc=False):
    """One atomic write. Do the parts in the order of the fields, then call `persisted(token)`.

    Tokens complete in the order in which they were given. An empty Persist writes nothing: it only waits for those
    before it, so that the messages of `send_after` keep their place.
    """

    token: int
    snapshot: SnapshotMarker | None  # replaces state and log; nothing older may be written afterwards
    truncate_after: int | None  # remove stored entries with a higher index
    entries: list[LogEntry]
    hard_state: HardState | None
    membership: Membership | None  # the one in force at `applied_index`, when it changed
    must_sync: bool  # False: there is nothing to write

    @property
    def is_empty(self) -> bool:
        return not self.must_sync


class LeaseRead(msgspec.Struct, frozen=True):
    """A read that needs no round: valid if the clock, looked at *after* reading, is before `until_ns`."""

    context: object
    index: int
    until_ns: int


class Divergence(msgspec.Struct, frozen=True):
    """Two replicas applied the same log and hold different states. One of them is broken; stop and tell."""

    peer: str
    index: int
    ours: bytes
    theirs: bytes


class Ready(msgspec.Struct, frozen=True):
    """Everything to do after a turn. The lists may be empty; the optional fields None."""

    send_now: list[AnyMessage]  # at once, before or while the disk works
    persist: Persist | None  # hand to the disk
    send_after: list[AnyMessage]  # only when this Ready's persist is durable; never without a persist
    apply: list[LogEntry]  # committed, in order, each exactly once; then call applied(index)
    reads: list[tuple[object, int]]  # (context, read index): the machine has reached it, read now
    lease_reads: list[LeaseRead]
    reads_refused: list[object]  # contexts whose leader was lost: ask again
    role: RoleChange | None  # when something in it changed
    diverged: list[Divergence]
    is_rolled_back: bool  # a peer knows a later incarnation of us: this disk lost its memory; stop for good


class _Pending(msgspec.Struct):
    token: int
    stable_index: int  # what becomes stable with it; lowered when the log is cut meanwhile
    self_vote_term: int  # term in which our own vote becomes countable; 0 for none
    installs: bool  # a snapshot
    handed_at_ns: int


class ReadyBuilder:
    """Collects a turn's output, and remembers what the disk has not answered."""

    def __init__(self) -> None:
        self.send_now: list[AnyMessage] = []
        self.send_after: list[AnyMessage] = []
        self.reads: list[tuple[object, int]] = []
        self.lease_reads: list[LeaseRead] = []
        self.reads_refused: list[object] = []
        self.diverged: list[Divergence] = []
        self.snapshot: SnapshotMarker | None = None
        self.self_vote_term = 0
        self._pending: deque[_Pending] = deque()
        self._installing_count = 0
        self._token = 0

    def has_answers(self) -> bool:
        return bool(self.reads or self.lease_reads or self.reads_refused or self.diverged)

    def clear(self) -> None:
        """Begin a new turn; the lists of the former one belong to the host now."""
        self.send_now, self.send_after, self.reads = [], [], []
        self.lease_reads, self.reads_refused, self.diverged = [], [], []

    def open_persist(self, stable_index: int, now_ns: int) -> int:
        """Number the persist of this turn and remember what it will make true."""
        self._token += 1
        self._pending.append(
            _Pending(self._token, stable_index, self.self_vote_term, self.snapshot is not None, now_ns)
        )
        self.self_vote_term = 0
        if self.snapshot is not None:
            self._installing_count += 1
            self.snapshot = None
        return self._token

    def close_persist(self, token: int) -> _Pending:
        assert self._pending and self._pending[0].token == token, "the disk answers in order, and once"
        done = self._pending.popleft()
        if done.installs:
            self._installing_count -= 1
        return done

    def cut(self, after: int) -> None:
        """The log was cut: writes under way must not mark what replaces the removed entries (the ABA trap)."""
        for pending in self._pending:
            pending.stable_index = min(pending.stable_index, after)

    @property
    def is_installing(self) -> bool:
        """Whether a snapshot waits for the disk; until then the state is neither the old nor the new one."""
        return self._installing_count > 0 or self.snapshot is not None

    def stalled_ns(self, now_ns: int) -> int:
        """How long the oldest write has been under way."""
        return now_ns - self._pending[0].handed_at_ns if self._pending else 0
