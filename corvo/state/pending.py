"""The order in which pending jobs are claimed: priority, then first in, first out.

The order lives in the keys. In memory stands only a window on its front, per queue and priority, refilled from the
map when it runs dry: claiming costs the same with ten jobs waiting or ten million, and memory stays bounded.
A window is a cache: dropping one at any moment changes no answer. Its invariant: every key between the queue's
cursor and the window's last item is in the window, and when `complete` there is no key behind that item either.
A job that left the order otherwise than by being claimed (cancelled, say) may linger in a window; `pop` skips it.
"""

from collections import OrderedDict, deque
from itertools import islice

from corvo.model.job import Job, Priority, Queue
from corvo.model.lifecycle import State
from corvo.state import keys
from corvo.state.kv import Overlay

_PENDING = State.PENDING  # to look up an enum's member is a call, and every job comes this way
WINDOW_JOBS = 512
AHEAD_JOBS = 128  # that are added to a window at once while nobody waits: it must not take long if somebody comes
WINDOWS_KEPT = 1024  # half a million waiting jobs known by place at the most, about 80 MB


class PendingWindow:
    __slots__ = ("complete", "items", "prefix")

    def __init__(self, queue: str, priority: Priority) -> None:
        self.prefix = keys.pending_prefix(queue, priority)
        self.items: deque[tuple[int, str]] = deque()
        self.complete = False


class PendingOrder:
    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._windows: OrderedDict[tuple[str, Priority], PendingWindow] = OrderedDict()

    def add(self, job: Job) -> None:
        """File at the back: the job's position is greater than every earlier one."""
        key = (job.queue, job.priority)
        window = self._windows.get(key)
        if window is None:
            return
        if window.complete and len(window.items) < WINDOW_JOBS:
            window.items.append((job.position, job.id))
        else:
            window.complete = False

    def pop(self, queue: Queue, priority: Priority) -> tuple[int, str] | None:
        """Position and id of the first job in this order, moved past. The caller checks that it is still pending."""
        window = self._window(queue, priority)
        if not window.items:
            if window.complete:
                return None
            self._refill(window, queue.cursors[priority])
            if not window.items:
                return None
        return window.items.popleft()

    def upcoming(self, queue: Queue, limit: int) -> list[str]:
        """Ids that will be claimed next, as far as the windows know: for warming caches only. A window that would soon
        run dry is filled up here, where nobody waits for it."""
        found: list[str] = []
        for priority in Priority:
            window = self._windows.get((queue.name, priority))
            if window is not None:
                if len(window.items) < limit and not window.complete:
                    self._refill(window, queue.cursors[priority], len(window.items) + AHEAD_JOBS)
                found += [job_id for _, job_id in islice(window.items, limit - len(found))]
        return found

    def forget(self) -> None:
        self._windows.clear()

    def _window(self, queue: Queue, priority: Priority) -> PendingWindow:
        key = (queue.name, priority)
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = PendingWindow(queue.name, priority)
            if len(self._windows) > WINDOWS_KEPT:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(key)
        return window

    def _refill(self, window: PendingWindow, cursor: int, most: int = WINDOW_JOBS) -> None:
        """Read on behind the last item, else behind the cursor, never from the start of the prefix: what was claimed
        left tombstones there."""
        prefix_size = len(window.prefix)
        last = window.items[-1][0] if window.items else cursor
        start = window.prefix + keys.pack_u64(last + 1)
        window.complete = True
        for key, _ in self._overlay.scan(start, keys.prefix_end(window.prefix)):
            if len(window.items) >= min(most, WINDOW_JOBS):
                window.complete = False
                return
            window.items.append(keys.pending_position(key, prefix_size))


def is_waiting(job: Job | None, position: int) -> bool:
    return job is not None and job.state == _PENDING and job.position == position
