"""What a leader believes about one replica, and how much it dares to send it.

    PROBE      where the logs part is not known: one Append at a time, until the answer shows it
    REPLICATE  known: Appends are sent ahead of the answers, within a window of messages and bytes
    SNAPSHOT   the entries it needs are gone: a snapshot is under way, no Appends

`match` is proved by the replica and never goes back while it lives; `next` is a guess and may. match < next.
"""

from __future__ import annotations

import enum
from collections import deque

import msgspec


class Mode(enum.Enum):
    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


class PeerStatus(msgspec.Struct, frozen=True):
    """One line of `Raft.progress()`, for people and monitors."""

    replica: str
    match: int
    next: int
    mode: str
    is_learner: bool
    is_caught_up: bool
    inflight_messages: int
    silent_ns: int  # since it was last heard; 0 for the leader itself


class Progress:
    __slots__ = (
        "catch_up_since_ns",
        "catch_up_target",
        "caught_up",
        "heard",
        "heard_at_ns",
        "inflight",
        "inflight_bytes",
        "is_learner",
        "match",
        "mode",
        "next",
        "nudged",
        "paused",
        "replica",
        "round",
        "sent_commit",
        "snapshot_deadline_ns",
        "snapshot_index",
    )

    def __init__(self, replica: str, next_index: int, now_ns: int) -> None:
        self.replica = replica
        self.match = 0
        self.next = next_index
        self.mode = Mode.PROBE
        self.paused = False  # PROBE: an Append is unanswered; REPLICATE: the window is full
        self.nudged = False  # an Append, even an empty one, is owed to it
        self.inflight: deque[tuple[int, int]] = deque()  # (last index, bytes) of each unanswered Append
        self.inflight_bytes = 0
        self.sent_commit = 0  # highest commit index told
        self.snapshot_index = 0
        self.snapshot_deadline_ns = 0
        self.heard = False  # since the last tick
        self.heard_at_ns = now_ns
        self.round = 0  # highest read round it confirmed
        self.is_learner = False
        self.catch_up_target = next_index - 1
        self.catch_up_since_ns = now_ns
        self.caught_up = False

    # --- what the replica's answers prove

    def accepted(self, index: int) -> bool:
        """It holds the log up to `index`; returns whether that is news."""
        self.next = max(self.next, index + 1)
        if index <= self.match:
            return False
        self.match = index
        return True

    def rejected(self, refused: int, hint: int) -> bool:
        """It does not hold `refused`; go back to `hint`. Returns whether the answer was not a stale one."""
        if self.mode is Mode.REPLICATE:
            if refused <= self.match:
                return False  # older than what it has proved since
            self.probe(self.match + 1)
            return True
        if self.next - 1 != refused:
            return False  # answers another probe than the one under way
        self.next = max(min(refused, hint + 1), self.match + 1)
        self.paused = False
        return True

    def freed_up_to(self, index: int) -> None:
        """Appends up to `index` were answered, so the window has room again."""
        inflight = self.inflight
        while inflight and inflight[0][0] <= index:
            self.inflight_bytes -= inflight.popleft()[1]
        self.paused = False

    # --- changes of mode

    def probe(self, next_index: int) -> None:
        self._enter(Mode.PROBE)
        self.next = max(next_index, self.match + 1)
        self.sent_commit = 0  # it may have forgotten: commitment is not durable

    def replicate(self) -> None:
        self._enter(Mode.REPLICATE)
        self.next = self.match + 1

    def await_snapshot(self, index: int, deadline_ns: int) -> None:
        self._enter(Mode.SNAPSHOT)
        self.snapshot_index = index
        self.snapshot_deadline_ns = deadline_ns

    def _enter(self, mode: Mode) -> None:
        self.mode = mode
        self.paused = False
        self.inflight.clear()
        self.inflight_bytes = 0
        self.snapshot_index = 0

    # --- sending

    def sent(self, last_index: int, size: int, commit: int) -> None:
        """An Append left. In PROBE it is a guess, so `next` stays; in REPLICATE the next one follows it."""
        self.sent_commit = max(self.sent_commit, min(commit, last_index))
        self.nudged = False
        if self.mode is Mode.PROBE:
            self.paused = True
        elif last_index >= self.next:
            self.next = last_index + 1
            self.inflight.append((last_index, size))
            self.inflight_bytes += size

    def is_window_full(self, messages_max: int, bytes_max: int) -> bool:
        return len(self.inflight) >= messages_max or self.inflight_bytes >= bytes_max

    # --- liveness

    def tick(self, now_ns: int) -> None:
        if self.heard:
            self.heard = False
            self.heard_at_ns = now_ns

    def measure_catch_up(self, last_index: int, now_ns: int, round_ns_max: int) -> None:
        """Rounds of thesis 4.2.1: a round brings over the log as it stood at the round's start, and must be short."""
        is_late = now_ns - self.catch_up_since_ns >= round_ns_max
        if self.match >= last_index:
            self.caught_up = True  # nothing is missing, however long it took
        elif self.match >= self.catch_up_target:
            self.caught_up = not is_late
        else:
            self.caught_up = self.caught_up and not is_late
            return
        self.catch_up_target = last_index
        self.catch_up_since_ns = now_ns

    def check(self) -> None:
        assert self.match < self.next, "the next entry to send is already there"
        assert self.inflight_bytes >= 0
