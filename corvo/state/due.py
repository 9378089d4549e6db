"""Scheduled and retrying jobs in the order in which they fall due, over all queues of the shard.

The order lives in the `t|` keys. In memory stand only two bounds: no live key lies before `floor`, so a scan never
wades through the tombstones of what was promoted; and nothing falls due before `next_at`, so an idle shard sleeps.
Looking ahead stops at a horizon: a million jobs that were cancelled behind it cost nothing.
"""

from corvo.state import keys
from corvo.state.kv import Overlay

HORIZON_NS = 1_000_000_000


class DueOrder:
    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._floor = 0
        self.next_at = 0  # a lower bound; 0 means "not looked yet"

    def add(self, due_at: int) -> None:
        self.next_at = min(self.next_at, due_at)
        self._floor = min(self._floor, due_at)

    def over(self, now: int, limit: int) -> list[str]:
        """Ids due by now, oldest first. The caller promotes them all, so the floor moves up to what is left."""
        found: list[str] = []
        for key, _ in self._overlay.scan(keys.due_floor(self._floor), keys.due_floor(now + 1)):
            due_at, job_id = keys.due_parts(key)
            if len(found) == limit:
                self._floor = self.next_at = due_at
                return found
            found.append(job_id)
        self._floor = max(self._floor, now)
        self.next_at = max(self.next_at, now + 1)
        return found

    def look_ahead(self, now: int) -> int:
        """When something next falls due, or the horizon when nothing does before it."""
        if self.next_at > now:
            return self.next_at
        horizon = now + HORIZON_NS
        scan = self._overlay.scan(keys.due_floor(self._floor), keys.due_floor(horizon))
        first = next(iter(scan), None)
        self.next_at = horizon if first is None else keys.due_parts(first[0])[0]
        return self.next_at
