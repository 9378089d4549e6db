"""What a replica waits for, in the status and in the log."""

import structlog

from shards import raft
from shards.group.members import MemberUpkeep
from shards.snapshots.transfer import Snapshots

LOOK_EVERY_NS = 1_000_000_000
LOOK_WAITING_NS = 100_000_000
TELL_AFTER_NS = 1_000_000_000  # a shorter wait is not worth a line
TELL_EVERY_NS = 5_000_000_000
ENTRIES_BEHIND_MAX = 100  # a follower under load is always a few entries behind

log = structlog.get_logger()


class Readiness:
    def __init__(self, core: raft.Raft, members: MemberUpkeep, snapshots: Snapshots | None, started_ns: int) -> None:
        self._core = core
        self._members = members
        self._snapshots = snapshots
        self._since_ns: int | None = started_ns  # when the wait began; None: there is none
        self._look_at_ns = 0
        self._tell_at_ns = started_ns + TELL_AFTER_NS

    def waits_for(self) -> str:
        """Empty: nothing."""
        core = self._core
        for transfer in self._snapshots.transfers() if self._snapshots is not None else ():
            if not transfer.is_outgoing:
                return f"a snapshot from {transfer.node_id}: {transfer.bytes} bytes have come"
        if self._members.has_forgotten or not core.membership.voters:
            return "the group to take it in"
        if core.leader_id is None:
            return f"a leader: {core.role.value} in term {core.term}"
        behind = core.entries_behind
        if behind > ENTRIES_BEHIND_MAX:
            return f"{behind} entries that the group has and it has not applied"
        return ""

    def turn(self, now_ns: int) -> None:
        """Log a wait that lasts, and its end."""
        if now_ns < self._look_at_ns:
            return
        reason = self.waits_for()
        self._look_at_ns = now_ns + (LOOK_WAITING_NS if reason else LOOK_EVERY_NS)
        if not reason:
            if self._since_ns is not None:
                log.info("ready", seconds=round((now_ns - self._since_ns) / 1e9, 3))
                self._since_ns = None
        elif self._since_ns is None:
            self._since_ns, self._tell_at_ns = now_ns, now_ns + TELL_AFTER_NS
        elif now_ns >= self._tell_at_ns:
            self._tell_at_ns = now_ns + TELL_EVERY_NS
            log.info("waiting", waits_for=reason, seconds=round((now_ns - self._since_ns) / 1e9, 3))

    def next_ns(self) -> int | None:
        return None if self._since_ns is None else self._look_at_ns
