"""The order in which pending jobs are claimed: priority, then first in, first out.

The order is in the keys. Memory holds a window on the front of it, per queue and priority, which is refilled from the
map when it is empty. So a claim costs the same with ten jobs waiting or ten million, and memory is bounded. A window is
a cache: dropping one changes no answer. Its invariant: every key between the queue's cursor and the window's last item
is in the window; when `complete`, there is no key after that item. A job that left the order without being claimed (it
was cancelled, for example) may still be in a window; `pop` skips it.
"""

from collections import OrderedDict, deque
from itertools import islice

from corvo.model.job import Job, Priority, Queue
from corvo.model.lifecycle import State
from corvo.state import keys
from corvo.state.kv import Overlay

_PENDING = State.PENDING  # a member lookup on an enum is a call, and this is a hot path
WINDOW_JOBS = 512
AHEAD_JOBS = 128  # added to a window at a time when the shard is idle: a request that arrives meanwhile waits for it
WINDOWS_KEPT = 1024  # at most half a million jobs in memory, about 80 MB


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
        """Add at the end: the job's position is greater than every earlier one."""
        key = (job.queue, job.priority)
        window = self._windows.get(key)
        if window is None:
            return
        if window.complete and len(window.items) < WINDOW_JOBS:
            window.items.append((job.position, job.id))
        else:
            window.complete = False

    def pop(self, queue: Queue, priority: Priority) -> tuple[int, str] | None:
        """Take the first job of this order: position and id. The caller checks that it is still pending."""
        window = self._window(queue, priority)
        if not window.items:
            if window.complete:
                return None
            self._refill(window, queue.cursors[priority])
            if not window.items:
                return None
        return window.items.popleft()

    def upcoming(self, queue: Queue, limit: int) -> list[str]:
        """Ids that will be claimed next, as far as the windows hold them: for warming caches only. A window that is
        nearly empty is refilled here, while no request waits."""
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
        """Read on after the last item, or after the cursor. Never from the start of the prefix: claimed jobs left
        tombstones there."""
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
