"""Calls that wait for something to happen: fetches and awaits for a job, pulls for a change.

They live in memory, on the leader, and never touch the log. First come, first woken, per queue: a call that was woken
and found nothing comes back to its old place: its ticket says where that was.
"""

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heappop, heappush

import msgspec

from corvo.endpoint import Operation, Query
from corvo.ops.jobs.fetch import Fetch
from corvo.queries.job import Await

CallKey = tuple[bytes, int]  # peer, call id


class PendingCall(msgspec.Struct):
    """A call that has been admitted and not answered."""

    peer: bytes
    call_id: int
    ask: Operation | Query
    raw: bytes
    arrived_ns: int  # monotonic
    deadline_ns: int  # monotonic: after this the caller has given up
    wait_until_ns: int = 0  # monotonic: how long a fetch may wait
    ticket: int = 0  # its place in every queue's line; 0: it has not waited yet

    @property
    def key(self) -> CallKey:
        return self.peer, self.call_id


class Waiters:
    def __init__(self) -> None:
        self._calls: dict[CallKey, PendingCall] = {}
        self._by_queue: dict[str, OrderedDict[CallKey, PendingCall]] = {}
        self._ends: list[tuple[int, bytes, int]] = []
        self._last_ticket = 0

    def __len__(self) -> int:
        return len(self._calls)

    def park(self, call: PendingCall, queues: Iterable[str]) -> None:
        self.remove(call.key)  # a call that is sent again replaces the earlier one
        is_back = call.ticket > 0
        if not is_back:
            self._last_ticket = call.ticket = self._last_ticket + 1
        self._calls[call.key] = call
        for queue in queues:
            line = self._by_queue.setdefault(queue, OrderedDict())
            line[call.key] = call
            if is_back:
                _move_to_place(line, call)
        heappush(self._ends, (call.wait_until_ns, *call.key))

    def remove(self, key: CallKey) -> PendingCall | None:
        call = self._calls.pop(key, None)
        if call is not None:
            assert isinstance(call.ask, Fetch | Await)
            for queue in call.ask.queues:
                line = self._by_queue.get(queue)
                if line is not None:
                    line.pop(key, None)
                    if not line:
                        del self._by_queue[queue]
        return call

    def waits_for(self, queue: str) -> bool:
        return queue in self._by_queue

    def wake(self, queue: str, jobs: int, only_fetches: bool = False) -> list[PendingCall]:
        """As many of the longest waiting as there are jobs for. With `only_fetches` awaits keep waiting in their
        places, and the jobs that are theirs are left to them."""
        woken: list[PendingCall] = []
        for call in self._by_queue.get(queue, {}).values():
            if jobs <= 0:
                break
            if isinstance(call.ask, Fetch):
                jobs -= call.ask.count
                woken.append(call)
            else:
                jobs -= 1
                if not only_fetches:
                    woken.append(call)
        for call in woken:
            self.remove(call.key)
        return woken

    def over(self, now_ns: int) -> list[PendingCall]:
        """Calls whose time is over."""
        ended: list[PendingCall] = []
        while self._ends and self._ends[0][0] <= now_ns:
            until, peer, call_id = heappop(self._ends)
            call = self._calls.get((peer, call_id))
            if call is not None and call.wait_until_ns == until:
                self.remove(call.key)
                ended.append(call)
        return ended

    def next_end_ns(self) -> int | None:
        """The earliest end; one that was removed meanwhile only wakes us early."""
        return self._ends[0][0] if self._ends else None

    def take_all(self) -> list[PendingCall]:
        calls = list(self._calls.values())
        self._calls.clear()
        self._by_queue.clear()
        self._ends.clear()
        return calls

    def forget_peer(self, peer: bytes) -> None:
        for key in [key for key in self._calls if key[0] == peer]:
            self.remove(key)

    def forget_peers(self, beginning: bytes) -> None:
        for key in [key for key in self._calls if key[0].startswith(beginning)]:
            self.remove(key)


def _move_to_place(line: OrderedDict[CallKey, PendingCall], call: PendingCall) -> None:
    """To the head of the line, behind those with older tickets: a call that comes back was among the first."""
    older: list[CallKey] = []
    line.move_to_end(call.key, last=False)
    for key, other in line.items():
        if other.ticket > call.ticket:
            break
        if key != call.key:
            older.append(key)
    for key in reversed(older):
        line.move_to_end(key, last=False)
