"""Where calls come in: admitted, made to wait, or refused, and answered when the replica has a result.

It decides by what this replica knows now; everything that changes the state goes on to the replica. Every list is
bounded: past the bound a caller is told to send the request again, and when.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from corvo.endpoint import Operation, Query
from corvo.model.drain_rate import DrainRate
from corvo.model.errors import Refused
from corvo.model.namespaces import shown_name
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fetch import Fetch
from corvo.queries.events import GetEvents
from corvo.queries.feed import Pull
from corvo.queries.job import Await
from corvo.state.claim_limits import NO_LIMIT, room
from corvo.state.tables import Tables
from corvo.wire import Call, Reply, decode_ask, pieces, reply_to
from shards.intake.event_waits import EventWaits
from shards.intake.presence import Presence
from shards.intake.waiters import PendingCall, Waiters

CALLS_WAITING_MAX = 16_384  # admitted and not yet in the log
CALLS_OF_QUEUE_MAX = CALLS_WAITING_MAX // 2  # of them for one queue: a flood of one leaves room for the others
WAITING_BYTES_MAX = 64 * 1024 * 1024
CALLS_PARKED_MAX = 100_000
PULLS_PARKED_MAX = 16
AWAIT_RECHECK_NS = 10_000_000
ANSWERED_BEFORE_NS = 200_000_000  # the deadline: an answer needs time to arrive
BYTES_PER_MESSAGE = 8 * 1024 * 1024  # far below what a socket refuses, even with one large reply more
_MS = 1_000_000

_LATE = Refused("DEADLINE_EXCEEDED", "the request's deadline passed before the shard could accept it")
_UNKNOWN = Refused("BAD_REQUEST", "the shard does not know this operation; gateway and shard differ in version")


class Proposed(NamedTuple):
    """An entry that was made here."""

    term: int
    now: int
    due: list[bytes]  # operations of our own, which come first
    batch: list[PendingCall]  # calls in the order of the entry


class Admission:
    def __init__(
        self, tables: Tables, presence: Presence, is_there: Callable[[bytes], bool] = lambda peer: True
    ) -> None:
        """`is_there`: whether a peer can still be answered."""
        self._tables = tables
        self._presence = presence
        self._is_there = is_there
        self._gone: list[bytes] = []
        self.proposed: dict[int, Proposed] = {}  # by index
        self.waiters = Waiters()
        self.pulls: deque[PendingCall] = deque()
        self.event_waits = EventWaits(tables.event_log, self.answer)
        self.operations: deque[PendingCall] = deque()  # for the log
        self.queries: list[PendingCall] = []  # for the leader's state
        self._waiting_bytes = 0  # of `operations`
        self._of_queue: dict[str, int] = {}  # calls among them that bring jobs to a queue, or take them from it
        self._pace = DrainRate()
        self.overloads = 0
        self.told: set[str] = set()  # queues for which an await was answered, so that a fetch may follow
        self._recheck_at_ns = 0
        self._coming: dict[str, int] = {}  # jobs per queue in operations that wait here
        self._replies: dict[bytes, list[Reply]] = {}

    # In

    def admit(self, peer: bytes, call: Call, now_ns: int) -> None:
        if not call.ask:
            self._recall(peer, call.id)
            return
        try:
            ask: Operation | Query = decode_ask(call.ask)
        except ValueError:
            self.answer(peer, call.id, _UNKNOWN)
            return
        waiting = PendingCall(peer, call.id, ask, call.ask, now_ns, now_ns + call.deadline_ms * _MS)
        if isinstance(ask, Fetch):
            self._admit_fetch(waiting, ask)
        elif isinstance(ask, Operation):
            self._admit_operation(waiting)
        elif isinstance(ask, Await):
            self._admit_await(waiting, ask)
        elif isinstance(ask, Pull):
            self._admit_pull(waiting, ask)
        elif isinstance(ask, GetEvents):
            waiting.wait_until_ns = _patience_end(waiting, ask.wait_ms)
            self.event_waits.admit(waiting, ask)
        else:
            self.queries.append(waiting)

    def _recall(self, peer: bytes, call_id: int) -> None:
        """The caller waits no longer: answer the call now if it waits for jobs, and do not let it wait later."""
        parked = self.waiters.remove((peer, call_id))
        if parked is not None:
            self._answer_empty(parked)
            return
        if self.event_waits.recall((peer, call_id)):
            return
        for waiting in [*self.operations, *(each for entry in self.proposed.values() for each in entry.batch)]:
            if waiting.key == (peer, call_id):
                waiting.wait_until_ns = waiting.arrived_ns

    def _admit_operation(self, waiting: PendingCall) -> None:
        if len(self.operations) >= CALLS_WAITING_MAX or self._waiting_bytes > WAITING_BYTES_MAX:
            self._turn_away(waiting, "this shard has as much waiting as it can hold", len(self.operations))
            return
        queue = _queue_of(waiting.ask)
        of_queue = self._of_queue.get(queue, 0)
        if of_queue >= CALLS_OF_QUEUE_MAX and queue:
            self._turn_away(waiting, f"queue {shown_name(queue)} has as much waiting as one queue may have", of_queue)
            return
        self._enter(waiting, queue)
        if isinstance(waiting.ask, Enqueue):
            for job in waiting.ask.jobs:
                self._coming[job.queue] = self._coming.get(job.queue, 0) + 1

    def _admit_fetch(self, waiting: PendingCall, fetch: Fetch) -> None:
        self._presence.ask(fetch.queues, waiting.arrived_ns)
        waiting.wait_until_ns = _patience_end(waiting, fetch.wait_ms)
        # A repeated fetch must reach the machine even when nothing is pending: it may hold claims already.
        if fetch.is_repeated or any(self._may_claim(fetch, queue) for queue in fetch.queues):
            self._admit_operation(waiting)
        else:
            self.wait_or_answer(waiting, fetch)

    def _may_claim(self, fetch: Fetch, queue: str) -> bool:
        """Whether there is a job, or may be one when the operations ahead are applied. A fetch that can wait leaves
        such a job to those that wait for it already."""
        if not (fetch.wait_ms and self.waiters.waits_for(queue)):
            if fetch.is_after_operations:
                return True  # they may free a slot or a dependency: only applying them tells
            if queue in self._coming:
                return self._gate(queue) > 0
        return self._tables.has_pending(queue)

    def _admit_await(self, waiting: PendingCall, ask: Await) -> None:
        self._presence.ask(ask.queues, waiting.arrived_ns)
        waiting.wait_until_ns = _patience_end(waiting, ask.wait_ms)
        if any(self._tables.has_pending(queue) for queue in ask.queues):
            self.answer(waiting.peer, waiting.call_id, True)
        else:
            self._park(waiting, ask.queues)
        self._presence.see(ask.worker_id, ask.hostname, ask.queues)

    def _admit_pull(self, waiting: PendingCall, pull: Pull) -> None:
        waiting.wait_until_ns = waiting.arrived_ns + pull.wait_ms * _MS
        if len(self.pulls) >= PULLS_PARKED_MAX:
            self.pulls.popleft()  # its sender has asked again, or is gone
        self.pulls.append(waiting)

    def wait_or_answer(self, waiting: PendingCall, fetch: Fetch) -> None:
        """A fetch that found nothing waits until its time is over; it is never an entry of the log."""
        if waiting.wait_until_ns > waiting.arrived_ns:
            self._park(waiting, fetch.queues)
            self._presence.see(fetch.worker_id, fetch.hostname, fetch.queues)
        else:
            self.answer(waiting.peer, waiting.call_id, [])

    def _park(self, waiting: PendingCall, queues: list[str]) -> None:
        if len(self.waiters) >= CALLS_PARKED_MAX:
            self._turn_away(waiting, "as many calls wait for jobs as this shard can hold", CALLS_PARKED_MAX)
        else:
            self.waiters.park(waiting, queues)

    def _enter(self, waiting: PendingCall, queue: str) -> None:
        self.operations.append(waiting)
        self._waiting_bytes += len(waiting.raw)
        self._of_queue[queue] = self._of_queue.get(queue, 0) + 1

    def _turn_away(self, waiting: PendingCall, why: str, ahead: int) -> None:
        self.overloads += 1
        hint_ms = self._pace.clears_in_ms(ahead)
        self.answer(waiting.peer, waiting.call_id, Refused("OVERLOADED", f"{why}; send the request again", hint_ms))

    # Waking

    def wake_with(self, batch: list[PendingCall]) -> None:
        """Fetches that wait for what this batch enqueues join it: one entry serves both."""
        coming, self._coming = self._coming, {}
        if not len(self.waiters):
            return
        for queue, jobs in coming.items():
            # An await must not be told of jobs that are not there yet.
            batch += self._wake(queue, min(jobs, self._gate(queue)), only_fetches=True)

    def _gate(self, queue: str) -> int:
        """How many jobs of the queue its controls let through: no call is woken for a job that may not be claimed."""
        known = self._tables.find_queue(queue)
        return NO_LIMIT if known is None else room(known, self._tables.throttles, self._tables.now)

    def wake_again(self, now_ns: int) -> None:
        """A caller that was told of a job need not have claimed it: while jobs are left, the next one is told."""
        if not self.told:
            self._recheck_at_ns = now_ns + AWAIT_RECHECK_NS  # a caller that is told in this turn has that long to fetch
        elif now_ns >= self._recheck_at_ns:
            self._recheck_at_ns = now_ns + AWAIT_RECHECK_NS
            told, self.told = self.told, set()
            self.wake_pending(sorted(queue for queue in told if self.waiters.waits_for(queue)))

    def wake_pending(self, queues: list[str]) -> None:
        """Jobs are pending and calls wait for them: the longest waiting go ahead."""
        for queue in queues:
            claimable = self._tables.claimable(queue)
            if not claimable:
                continue
            for woken in self._wake(queue, claimable):
                if isinstance(woken.ask, Fetch):
                    self._enter(woken, _queue_of(woken.ask))
                else:
                    self.answer(woken.peer, woken.call_id, True)
                    self.told.add(queue)

    def _wake(self, queue: str, jobs: int, only_fetches: bool = False) -> list[PendingCall]:
        """The longest waiting whose caller is still there. A job must not be claimed for a gateway that died: it would
        be leased to no worker, and lose an attempt."""
        while True:
            woken = self.waiters.wake(queue, jobs, only_fetches)
            gone = {peer for peer in {call.peer for call in woken} if not self._is_there(peer)}
            if not gone:
                return woken
            for call in woken:
                if call.peer not in gone:
                    assert isinstance(call.ask, Fetch | Await)
                    self.waiters.park(call, call.ask.queues)
            for peer in gone:
                self.waiters.forget_peer(peer)
                self._gone.append(peer)

    def take_gone(self) -> list[bytes]:
        """Peers that were found to be gone since this was last asked."""
        if not self._gone:
            return self._gone
        gone, self._gone = self._gone, []
        return gone

    def turn(self, now_ns: int) -> None:
        """End the waits whose time is over."""
        for waiting in self.waiters.over(now_ns):
            self._answer_empty(waiting)

    def next_ns(self) -> int | None:
        ends_ns = self.waiters.next_end_ns()
        if not self.told:
            return ends_ns
        return self._recheck_at_ns if ends_ns is None else min(ends_ns, self._recheck_at_ns)

    def _answer_empty(self, waiting: PendingCall) -> None:
        self.answer(waiting.peer, waiting.call_id, [] if isinstance(waiting.ask, Fetch) else False)

    # Out

    def take_batch(self, now_ns: int, bytes_max: int, calls_max: int) -> list[PendingCall]:
        """What goes into the next entry, oldest first; calls past their deadline are refused instead."""
        batch: list[PendingCall] = []
        late: list[PendingCall] = []
        size = 0
        while self.operations and len(batch) < calls_max and size < bytes_max:
            waiting = self.operations.popleft()
            self._waiting_bytes -= len(waiting.raw)
            if waiting.deadline_ns < now_ns:
                self.answer(waiting.peer, waiting.call_id, _LATE)
                late.append(waiting)
                continue
            size += len(waiting.raw)
            batch.append(waiting)
        if not self.operations:
            self._of_queue.clear()  # nearly always: a turn takes all that waits
        else:
            for waiting in (*batch, *late):
                self._of_queue[_queue_of(waiting.ask)] -= 1
        self._pace.done(len(batch), now_ns)
        return batch

    def answer(self, peer: bytes, call_id: int, result: object) -> None:
        self.reply(peer, reply_to(call_id, result))

    def reply(self, peer: bytes, reply: Reply) -> None:
        replies = self._replies.get(peer)
        if replies is None:
            self._replies[peer] = [reply]
        else:
            replies.append(reply)

    def refuse(self, waitings: object, refused: Refused) -> None:
        """Refuse calls that Raft gave back; it knows them as an object only."""
        assert isinstance(waitings, list)
        for waiting in waitings:
            self.answer(waiting.peer, waiting.call_id, refused)

    def refuse_all(self, refused: Refused) -> None:
        """The replica leads no longer: refuse every call that waits for the leader."""
        for waiting in [*self.operations, *self.queries, *self.waiters.take_all()]:
            self.answer(waiting.peer, waiting.call_id, refused)
        self.operations.clear()
        self._of_queue.clear()
        self._waiting_bytes = 0
        self.queries.clear()
        self._coming.clear()
        self.told.clear()

    @property
    def has_replies(self) -> bool:
        return bool(self._replies)

    def take_replies(self) -> list[tuple[bytes, list[Reply]]]:
        """Peer and replies, each list small enough for one message."""
        if not self._replies:
            return []
        replies, self._replies = self._replies, {}
        return [
            (peer, some)
            for peer, all_ in replies.items()
            for some in pieces(all_, lambda reply: len(reply.result), BYTES_PER_MESSAGE)
        ]


def _queue_of(ask: Operation | Query) -> str:
    """The queue that a call crowds; empty for calls about claimed jobs."""
    if isinstance(ask, Enqueue):
        return ask.jobs[0].queue if ask.jobs else ""
    return ask.queues[0] if isinstance(ask, Fetch) and ask.queues else ""


def _patience_end(waiting: PendingCall, wait_ms: int) -> int:
    """Never beyond the caller's deadline: a call that is asked again late in its wait brings its old wait with it, and
    no job must be claimed for a caller that has given up."""
    asked = waiting.arrived_ns + wait_ms * _MS
    return max(min(asked, waiting.deadline_ns - ANSWERED_BEFORE_NS), waiting.arrived_ns)
