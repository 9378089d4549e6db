"""Leases of active jobs, ordered by their end.

In memory only: the `a|` key of each active job holds its lease end, and is read at start. Finished jobs are removed at
once; with lazy deletion a minute of finished jobs would stay in memory at full load.
"""

from heapq import heappop, heappush

_SLOT_NS = 100_000_000  # ends within one tenth of a second share a slot; the exact end is compared inside it


class Leases:
    def __init__(self) -> None:
        self._ends: dict[str, tuple[int, int]] = {}  # job id → lease end, claim id
        self._slots: dict[int, set[str]] = {}
        self._order: list[int] = []  # heap of slot numbers, each once while its slot exists

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, job_id: str, ends_at: int, claim_id: int) -> None:
        if job_id in self._ends:
            self.remove(job_id)
        self._ends[job_id] = (ends_at, claim_id)
        slot = ends_at // _SLOT_NS
        members = self._slots.get(slot)
        if members is None:
            members = self._slots[slot] = set()
            heappush(self._order, slot)
        members.add(job_id)

    def remove(self, job_id: str) -> None:
        known = self._ends.pop(job_id, None)
        if known is not None:
            # An empty slot stays until it is the oldest, because its number is in the heap.
            self._slots[known[0] // _SLOT_NS].discard(job_id)

    def over(self, now: int, limit: int) -> list[str]:
        """Ids whose lease has ended, oldest first; ties by id, so that every replica sees one order."""
        self._drop_empty()
        found: list[tuple[int, str]] = []
        for slot in sorted(slot for slot in self._slots if slot <= now // _SLOT_NS):
            found.extend((self._ends[job_id][0], job_id) for job_id in self._slots[slot])
            if len(found) >= limit + 1_000:
                break
        return [job_id for ends_at, job_id in sorted(found) if ends_at <= now][:limit]

    def next_end(self, now: int) -> int | None:
        """When the first lease ends: the exact time once its slot has begun, before that the start of the slot. So
        this call is cheap, and the leases of a slot are compared only when the slot is due."""
        self._drop_empty()
        if not self._order:
            return None
        slot = self._order[0]
        if slot * _SLOT_NS > now:
            return slot * _SLOT_NS
        return min(self._ends[job_id][0] for job_id in self._slots[slot])

    def claimed_by(self, claim_id: int) -> list[str]:
        """Ids of the jobs still held under one fetch. A scan: used only when a fetch is repeated after a crash."""
        return sorted(job_id for job_id, (_, claim) in self._ends.items() if claim == claim_id)

    def _drop_empty(self) -> None:
        while self._order and not self._slots[self._order[0]]:
            del self._slots[heappop(self._order)]
