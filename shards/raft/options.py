"""The numbers a group runs with. `election_ns` and `lease_reads` must agree in all replicas of a group."""

from __future__ import annotations

import msgspec

MS = 1_000_000
MIB = 1 << 20


class Options(msgspec.Struct, frozen=True):
    heartbeat_ns: int = 100 * MS
    election_ns: int = 1000 * MS  # T: minimum election timeout; each wait is drawn from [T, 2T)
    quorum_ns: int = 0  # a leader that hears no majority for so long steps down; 0: election_ns
    append_bytes_max: int = MIB  # payload of one Append; a larger entry travels alone
    inflight_messages_max: int = 64  # unanswered Appends per follower
    inflight_bytes_max: int = 4 * MIB
    uncommitted_bytes_max: int = 64 * MIB  # proposals beyond it are refused
    apply_bytes_max: int = 4 * MIB  # payload of one Ready.apply
    tail_bytes_max: int = 16 * MIB  # durable entries kept in memory for slow followers and slow applying
    snapshot_timeout_ns: int = 60_000 * MS  # without a report, a snapshot is believed lost after this
    disk_stall_ns: int = 1000 * MS  # a leader whose own disk is silent this long hands over
    lease_reads: bool = False
    lease_margin_ns: int = 100 * MS  # how far two clocks may drift apart within election_ns
    points_max: int = 256  # state hashes remembered for comparison

    @property
    def quorum_silence_ns(self) -> int:
        return self.quorum_ns or self.election_ns

    def check(self) -> None:
        assert 0 < self.heartbeat_ns <= self.election_ns // 2, "an election must outlast two heartbeats"
        assert self.quorum_silence_ns >= self.election_ns, "a leader that others may still follow should not step down"
        assert self.append_bytes_max > 0 and self.apply_bytes_max > 0
        assert self.inflight_messages_max > 0 and self.inflight_bytes_max > 0
        assert self.uncommitted_bytes_max > 0 and self.tail_bytes_max >= 0
        assert 0 <= self.lease_margin_ns < self.election_ns, "a lease must be shorter than an election"
        assert self.snapshot_timeout_ns > 0 and self.disk_stall_ns > 0 and self.points_max > 0
