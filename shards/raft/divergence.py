"""Comparing the states of replicas while they work.

Equal logs must give equal states. Replicas tell each other the hash of their machine's state after some applied
entry, with heartbeats and answers; a replica that still has its own hash at that entry compares. This finds a machine
that is not deterministic, and memory or disk that lies, soon after it happened instead of at the next failover.
"""

from __future__ import annotations

from shards.raft.messages import NO_POINT, StatePoint


class StatePoints:
    """The state hashes of the latest applied entries."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._hashes: dict[int, bytes] = {}
        self.latest = NO_POINT

    def add(self, index: int, state_hash: bytes) -> None:
        if len(self._hashes) >= self._count_max:
            del self._hashes[next(iter(self._hashes))]
        self._hashes[index] = state_hash
        self.latest = StatePoint(index, state_hash)

    def find_conflict(self, point: StatePoint) -> bytes | None:
        """Our hash at that point, if it is another one than the peer's."""
        ours = self._hashes.get(point.index)
        return ours if ours is not None and ours != point.hash else None
