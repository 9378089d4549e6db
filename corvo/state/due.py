"""Things that fall due, ordered by time: scheduled and retrying jobs (`t|`), and alarms (`al|`).

The order is in the keys, over all queues of the shard. Memory holds only two bounds. No live key lies before `floor`,
so a scan skips the tombstones of handled keys. Nothing falls due before `next_at`, so an idle shard sleeps. Looking
ahead stops at a horizon, so a million cancelled jobs beyond it cost nothing.
"""

from corvo.state import keys
from corvo.state.kv import Overlay

HORIZON_NS = 1_000_000_000


class DueOrder:
    def __init__(self, overlay: Overlay, family: bytes) -> None:
        self._overlay = overlay
        self._family = family
        self._floor = 0
        self.next_at = 0  # a lower bound; 0 means "not looked yet"

    def add(self, due_at: int, subject: str, value: bytes = b"") -> None:
        self._overlay.puts[keys.due(self._family, due_at, subject)] = value
        self.put_off(due_at)

    def remove(self, due_at: int, subject: str) -> None:
        self._overlay.puts[keys.due(self._family, due_at, subject)] = None

    def over(self, now: int, limit: int) -> list[tuple[int, str, bytes]]:
        """Time, subject and value of everything due by now, oldest first. The caller handles each one or calls
        `put_off`, so the floor moves up to the first key that is left."""
        found: list[tuple[int, str, bytes]] = []
        for key, value in self._overlay.scan(
            keys.due_floor(self._family, self._floor), keys.due_floor(self._family, now + 1)
        ):
            due_at, subject = keys.due_parts(self._family, key)
            if len(found) == limit:
                self._floor = self.next_at = due_at
                return found
            found.append((due_at, subject, value))
        self._floor = max(self._floor, now)
        self.next_at = max(self.next_at, now + 1)
        return found

    def put_off(self, due_at: int) -> None:
        """Something due is not handled in this entry: find it again later."""
        self.next_at = min(self.next_at, due_at)
        self._floor = min(self._floor, due_at)

    def look_ahead(self, now: int) -> int:
        """When the next thing falls due, at the latest the horizon."""
        if self.next_at > now:
            return self.next_at
        horizon = now + HORIZON_NS
        scan = self._overlay.scan(keys.due_floor(self._family, self._floor), keys.due_floor(self._family, horizon))
        first = next(iter(scan), None)
        self.next_at = self._floor = horizon if first is None else keys.due_parts(self._family, first[0])[0]
        return self.next_at
