"""A socket per shard: calls out, replies in, and what happens when a shard dies in between.

Everything that is asked in one tick of the loop leaves as one message. A call that was sent when its shard died is
sent again to its successor: every operation is safe to repeat, because its ids were stamped before it was first
sent. So is one whose shard has no leader at the moment, for as long as an election should take. What is not answered by
its deadline is refused as unavailable; whether it happened is then unknown.
"""

import asyncio
from collections.abc import Callable
from time import monotonic, monotonic_ns
from typing import Any

import msgspec
import structlog
import zmq
from zmq.utils.monitor import parse_monitor_message

from corvo.endpoint import Operation, Query
from corvo.model.drain_rate import DrainRate
from corvo.model.errors import Refusal
from corvo.model.limits import CALLS_PER_MESSAGE_MAX, MESSAGE_BYTES_MAX
from corvo.ops.jobs.fetch import Fetch
from corvo.queries.job import Await
from corvo.wire import Call, decode_replies, decode_result, encode, encode_calls

IN_FLIGHT_MAX = 16_384
IN_FLIGHT_BYTES_MAX = 64 * 1024 * 1024  # a shard that stands still must not make the gateway grow
SWEEP_S = 0.25
# A shard without a leader: asked again this often, until a request is this old and an election had this long.
LEADERLESS_RETRY_S = 0.05
LEADERLESS_ASKED_S = 1.6
LEADERLESS_S = 0.5
LEADERLESS_WAIT_S = 1.6  # of a call that had waited, as it was meant to: it has no age
BYTES_PER_MESSAGE = 8 * 1024 * 1024
LEADERLESS = frozenset({"NOT_LEADER", "OUTCOME_UNKNOWN"})

log = structlog.get_logger()


class Pending(msgspec.Struct):
    call_id: int
    ask: Operation | Query
    raw: bytes
    deadline: float  # monotonic seconds
    future: "asyncio.Future[Any]"
    is_sent: bool = False
    asked: float = 0.0
    refused: float = 0.0  # when the shard last said that it has no leader
    leaderless: float = 0.0  # since when it says so
    is_uncertain: bool = False  # a leader may have acted on it before it was lost


class ShardLink:
    def __init__(self, context: "zmq.Context[Any]", shard: int, address: str) -> None:
        self.shard = shard
        self.is_up = False
        self.repeats = 0
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, Pending] = {}
        self._waiting: list[Pending] = []
        self._leaderless: list[Pending] = []  # to be asked again in a moment
        self._next_id = 0
        self._bytes = 0  # of all calls under way
        self._pace = DrainRate()
        self._is_flush_due = False
        socket = self._socket = context.socket(zmq.DEALER)
        socket.set_hwm(IN_FLIGHT_MAX)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing is queued for a shard that is not there
        socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        socket.setsockopt(zmq.RECONNECT_IVL, 20)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 100)
        socket.setsockopt(zmq.HEARTBEAT_IVL, 1_000)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3_000)
        socket.setsockopt(zmq.HEARTBEAT_TTL, 3_000)
        self._monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        socket.connect(address)
        self._loop.add_reader(socket.fileno(), self._receive)
        self._loop.add_reader(self._monitor.fileno(), self._watch)
        self._sweeper = self._loop.call_later(0, self._sweep)

    @property
    def in_flight(self) -> int:
        return len(self._calls)

    def ask(self, ask: Operation | Query, timeout_s: float) -> Pending:
        """Sent at the end of this tick. Raises `Refusal` at once when too much is under way already."""
        if len(self._calls) >= IN_FLIGHT_MAX:
            raise self._overloaded(f"{IN_FLIGHT_MAX} requests wait for shard {self.shard}; try again")
        raw = encode(ask)
        if self._bytes + len(raw) > IN_FLIGHT_BYTES_MAX and self._calls:
            raise self._overloaded(f"{self._bytes} bytes wait for shard {self.shard}; try again")
        self._next_id += 1
        now = monotonic()
        pending = Pending(self._next_id, ask, raw, now + timeout_s, self._loop.create_future(), asked=now)
        self._calls[pending.call_id] = pending
        self._bytes += len(raw)
        self._waiting.append(pending)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)
        return pending

    def _overloaded(self, sentence: str) -> Refusal:
        return Refusal("OVERLOADED", sentence, retry_after_ms=self._pace.clears_in_ms(len(self._calls)))

    def recall(self, pending: Pending) -> None:
        """End a wait early: a parked call is answered empty at once, one that is past parking with its result."""
        if pending.is_sent and self.is_up and pending not in self._leaderless:
            self._send([Call(pending.call_id, 0, b"")])
            return
        self._drop(pending.call_id)
        if not pending.future.done():
            pending.future.set_result([])

    def close(self) -> None:
        self.is_up = False  # a flush that is due finds nothing to do
        self._sweeper.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_reader(self._monitor.fileno())
        self._socket.disable_monitor()
        self._monitor.close(0)  # an open one would keep the context, and so the process, from ending
        self._socket.close(0)
        for pending in self._calls.values():
            pending.future.cancel()

    def _flush(self) -> None:
        self._is_flush_due = False
        if not self.is_up or not self._waiting:
            return  # sent when the link comes up
        waiting = [pending for pending in self._waiting if not pending.future.done()]
        self._waiting = []
        now = monotonic()
        while waiting:
            batch, size = [], 0
            for pending in waiting[:CALLS_PER_MESSAGE_MAX]:
                batch.append(pending)
                size += len(pending.raw)
                if size > BYTES_PER_MESSAGE:
                    break
            message = [Call(p.call_id, max(int((p.deadline - now) * 1000), 1), p.raw) for p in batch]
            if not self._send(message):
                self._waiting = waiting + self._waiting  # the sweep tries again
                break
            for pending in batch:
                pending.is_sent = True
            waiting = waiting[len(batch) :]
        # The descriptor only signals edges: what arrived while we sent would otherwise wait for the next one.
        self._receive()

    def _drop(self, call_id: int) -> Pending | None:
        pending = self._calls.pop(call_id, None)
        if pending is not None:
            self._bytes -= len(pending.raw)
        return pending

    def _send(self, message: list[Call]) -> bool:
        try:
            self._socket.send(encode_calls(message), zmq.NOBLOCK)
        except zmq.Again:  # the link broke just now, or the shard does not read: the deadline decides
            return False
        return True

    def _receive(self) -> None:
        socket = self._socket
        while socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            try:
                frame = socket.recv(zmq.NOBLOCK)
                if not frame:
                    continue  # the shard asks whether we are there: that it got through is the answer
                replies = decode_replies(frame)
            except zmq.Again:
                return
            except ValueError as error:
                log.error("reply refused", shard=self.shard, reason=str(error))
                continue
            self._pace.done(len(replies), monotonic_ns())
            for reply in replies:
                pending = self._drop(reply.id)
                if pending is None or pending.future.done():
                    continue
                try:
                    pending.future.set_result(decode_result(type(pending.ask), reply))
                except Refusal as refusal:
                    if refusal.code in LEADERLESS:
                        self._await_leader(pending, refusal)
                    else:
                        pending.future.set_exception(refusal)
                except ValueError as error:  # msgspec's errors are ValueErrors
                    log.error("result refused", shard=self.shard, ask=type(pending.ask).__name__, reason=str(error))
                    pending.future.set_exception(
                        Refusal("INTERNAL_ERROR", f"shard {self.shard} gave an answer that cannot be read")
                    )

    def _await_leader(self, pending: Pending, refusal: Refusal) -> None:
        """Ask again while an election may yet bring a leader in time. What is said in the end is true of all tries: of
        an operation that some leader may have acted on, that nobody knows; a question can simply be asked again."""
        now = monotonic()
        if now - pending.refused > LEADERLESS_ASKED_S:
            pending.leaderless = now  # it had been taken since, and waited
        pending.refused = now
        pending.is_uncertain |= refusal.code == "OUTCOME_UNKNOWN" and isinstance(pending.ask, Operation)
        is_wait = isinstance(pending.ask, Fetch | Await) and pending.ask.wait_ms > 0
        patience_s = LEADERLESS_WAIT_S if is_wait else LEADERLESS_S
        if now > max(pending.asked + LEADERLESS_ASKED_S, pending.leaderless + patience_s) or now > pending.deadline:
            pending.future.set_exception(_uncertain(self.shard) if pending.is_uncertain else _leaderless(self.shard))
            return
        self._calls[pending.call_id] = pending
        self._bytes += len(pending.raw)
        if not self._leaderless:
            self._loop.call_later(LEADERLESS_RETRY_S, self._ask_again)
        self._leaderless.append(pending)

    def _ask_again(self) -> None:
        leaderless, self._leaderless = self._leaderless, []
        for pending in leaderless:
            if pending.call_id in self._calls:
                self.repeats += 1
                if pending.is_uncertain:
                    self._mark_repeated(pending)
                self._waiting.append(pending)
        self._flush()

    def _mark_repeated(self, pending: Pending) -> None:
        if isinstance(pending.ask, Fetch):
            self._bytes -= len(pending.raw)
            pending.raw = encode(msgspec.structs.replace(pending.ask, is_repeated=True))
            self._bytes += len(pending.raw)

    def _watch(self) -> None:
        while self._monitor.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
            if event["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._come_up()
            else:
                self.is_up = False
                log.warning("shard lost", shard=self.shard, in_flight=len(self._calls))

    def _come_up(self) -> None:
        """The shard is there, or back. What it may have been asked before is asked again, marked as a repetition."""
        self.is_up = True
        for pending in self._calls.values():
            if pending.is_sent:
                self.repeats += 1
                self._mark_repeated(pending)
        self._waiting = list(self._calls.values())
        self._flush()

    def _sweep(self) -> None:
        """One timer for all deadlines: a timer a call would cost more than the call."""
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)
        self._watch()  # both descriptors only signal edges: look now and then, whatever they say
        self._receive()
        now = monotonic()
        for call_id in [call_id for call_id, pending in self._calls.items() if pending.deadline <= now]:
            pending = self._drop(call_id)
            if pending is not None and not pending.future.done():
                pending.future.set_exception(self._unanswered(pending))
        if self._waiting and self.is_up:
            self._flush()

    def _unanswered(self, pending: Pending) -> Refusal:
        if self.is_up:
            return Refusal("DEADLINE_EXCEEDED", f"shard {self.shard} did not answer in time; it may still act on it")
        if pending.is_sent:
            return _uncertain(self.shard)
        return unreachable(self.shard)


def _uncertain(shard: int) -> Refusal:
    return Refusal(
        "OUTCOME_UNKNOWN",
        f"shard {shard} was lost with the request under way and has not come back; look before repeating",
        retry_after_ms=1_000,
    )


def _leaderless(shard: int) -> Refusal:
    return Refusal(
        "NOT_LEADER", f"shard {shard} has no leader at the moment; send the request again", retry_after_ms=500
    )


def unreachable(shard: int) -> Refusal:
    return Refusal("SHARD_UNAVAILABLE", f"shard {shard} is not reachable; try again", retry_after_ms=1_000)


class Shards:
    """All shards of the cluster, by number."""

    def __init__(self, addresses: list[str], timeout_s: float) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self.links = [ShardLink(self._context, shard, address) for shard, address in enumerate(addresses)]
        self._timeout_s = timeout_s

    def __len__(self) -> int:
        return len(self.links)

    def ask(self, shard: int, ask: Operation | Query) -> "asyncio.Future[Any]":
        return self.links[shard].ask(ask, self._timeout_s).future

    def park(self, shard: int, ask: Operation | Query, wait_ms: int) -> Pending:
        """Ask what may take its time on purpose."""
        return self.links[shard].ask(ask, self._timeout_s + wait_ms / 1000)

    def recall(self, shard: int, pending: Pending) -> None:
        self.links[shard].recall(pending)

    def is_up(self, shard: int) -> bool:
        return self.links[shard].is_up

    async def ask_all(self, calls: list[tuple[int, Operation | Query]]) -> list[Any]:
        """Results in the order of the calls. The first refusal is raised, after every call has ended."""
        if len(calls) == 1:
            shard, ask = calls[0]
            return [await self.ask(shard, ask)]
        futures = [self._ask_or_fail(self.links[shard], ask, self._timeout_s) for shard, ask in calls]
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return list(outcomes)

    async def ask_each(self, make: Callable[[int], Query], timeout_s: float) -> list[Any]:
        """One question to every shard; a refusal stands in place of its answer."""
        futures = [self._ask_or_fail(link, make(link.shard), timeout_s) for link in self.links]
        return await asyncio.gather(*futures, return_exceptions=True)

    @staticmethod
    def _ask_or_fail(link: ShardLink, ask: Operation | Query, timeout_s: float) -> "asyncio.Future[Any]":
        """A shard that is full must not keep the caller from waiting for the others."""
        try:
            return link.ask(ask, timeout_s).future
        except Refusal as refusal:
            failed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            failed.set_exception(refusal)
            return failed

    def close(self) -> None:
        for link in self.links:
            link.close()
        self._context.term()
