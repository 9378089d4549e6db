"""The gateway's client of the shards: one connection to each, and one way to ask.

All calls of one tick of the event loop leave as one message per shard. What is sent again, and what is refused when no
answer comes, is decided in `corvo/calls.py`.
"""

import asyncio
import os
from collections.abc import Callable, Generator
from time import monotonic
from typing import Any

import structlog
import zmq

from corvo import calls
from corvo.calls import CallTable, OpenCall
from corvo.endpoint import Operation, Query
from corvo.links.shard_socket import ShardSocket
from corvo.model.errors import Refusal
from corvo.ops.jobs.fail import Fail, FailItem
from corvo.ops.jobs.fetch import Claimed, Fetch
from gateway.shards.sealing import NO_KEYS, OPENING, Sealing, unopened

SWEEP_S = 0.25
GIVEN_BACK_MS = 30_000
GIVE_BACK_S = 10.0

log = structlog.get_logger()


class ShardCall(OpenCall, kw_only=True, eq=False):
    """A call to be awaited: its result, or its refusal raised."""

    future: "asyncio.Future[Any]"
    sealing: Sealing = NO_KEYS
    give_back: Callable[[list[Claimed]], None] = lambda claimed: None

    def __await__(self) -> Generator[Any, None, Any]:
        return self.future.__await__()

    def is_over(self) -> bool:
        return self.future.done()

    def end(self, outcome: Any) -> None:
        if isinstance(outcome, Refusal):
            self.future.set_exception(outcome)
            self.future.exception()  # looked at: a refusal that nobody awaits any more is no fault to be logged
        elif type(self.ask) in OPENING:
            self._open(outcome)
        else:
            self.future.set_result(outcome)

    def _open(self, outcome: Any) -> None:
        try:
            self.future.set_result(self.sealing.open(outcome))
        except Refusal as refusal:
            if type(self.ask) is Fetch:
                self.give_back(outcome)
            self.future.set_exception(refusal)
            self.future.exception()
        except Exception:  # a call must end, whatever a disk holds
            log.exception("a document of a shard cannot be read", ask=type(self.ask).__name__)
            self.future.set_exception(unopened("it cannot be read"))
            self.future.exception()


class ShardLink:
    """The connection to one shard."""

    def __init__(self, context: "zmq.Context[Any]", shard: int, address: str, sealing: Sealing) -> None:
        self.table = CallTable(shard)
        self._sealing = sealing
        self._socket = ShardSocket(context, shard, address)
        self._loop = asyncio.get_running_loop()
        self._is_send_due = False
        self._retry: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._socket.socket.fileno(), self._receive)
        self._loop.add_reader(self._socket.events.fileno(), self._watch)
        self._sweeper = self._loop.call_later(0, self._sweep)

    def ask(self, ask: Operation | Query, timeout_s: float) -> ShardCall:
        now = monotonic()
        sealing = self._sealing
        call = ShardCall(
            ask, now, now + timeout_s, future=self._loop.create_future(), sealing=sealing, give_back=self._give_back
        )
        try:
            if sealing.is_on:
                call.ask = sealing.seal(ask)
            self.table.add(call)
            call.ask = ask  # what is asked again elsewhere is sealed anew
        except Refusal as refusal:
            call.end(refusal)
            return call
        if not self._is_send_due:
            self._is_send_due = True
            self._loop.call_soon(self._send)
        return call

    def _give_back(self, claimed: list[Claimed]) -> None:
        """Jobs whose payload this node cannot decrypt: others may, and the claim is no attempt."""
        items = [FailItem(job.job_id, job.lease_token, snooze_ms=GIVEN_BACK_MS) for job in claimed]
        log.error("claimed jobs cannot be decrypted and are given back", jobs=[item.job_id for item in items[:10]])
        self.ask(Fail(int.from_bytes(os.urandom(7)), items), GIVE_BACK_S)

    def recall(self, call: ShardCall) -> None:
        recall = self.table.recall(call)
        if recall is not None:
            self._socket.send([recall])

    def close(self) -> None:
        self.table.go_down()  # a send that is due finds nothing to do
        self._sweeper.cancel()
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._socket.socket.fileno())
        self._loop.remove_reader(self._socket.events.fileno())
        self._socket.close()
        for call in self.table.take_all():
            assert isinstance(call, ShardCall)
            call.future.cancel()

    def _send(self) -> None:
        self._is_send_due = False
        if self.table.is_up:
            self.table.send(monotonic(), self._socket.send)
            self._receive()  # the descriptor only signals edges: what arrived meanwhile would wait for the next one

    def _receive(self) -> None:
        replies = self._socket.receive()
        if not replies:
            return
        for fault in self.table.receive(replies, monotonic()):
            log.error("result refused", shard=self.table.shard, reason=fault)
        if self.table.has_leaderless and self._retry is None:
            self._retry = self._loop.call_later(calls.LEADERLESS_RETRY_S, self._ask_again)

    def _ask_again(self) -> None:
        self._retry = None
        self.table.retry()
        self._send()

    def _watch(self) -> None:
        for is_up in self._socket.changes():
            if is_up:
                self.table.come_up()
                self._send()
            else:
                self.table.go_down()
                log.warning("shard lost", shard=self.table.shard, open_calls=len(self.table))

    def _sweep(self) -> None:
        """One timer for all deadlines: a timer for each call would cost more than the call."""
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)
        self._watch()  # both descriptors only signal edges: look from time to time, whatever they say
        self._receive()
        self.table.expire(monotonic())
        if self.table.has_unsent:
            self._send()


class Shards:
    """All shards of the cluster, by number."""

    def __init__(self, addresses: list[str], timeout_s: float, sealing: Sealing | None = None) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        sealing = sealing or NO_KEYS
        self.links = [ShardLink(self._context, shard, address, sealing) for shard, address in enumerate(addresses)]
        self._timeout_s = timeout_s

    def __len__(self) -> int:
        return len(self.links)

    def ask(self, shard: int, ask: Operation | Query, wait_ms: int = 0, timeout_s: float | None = None) -> ShardCall:
        """Sent at the end of this tick. `wait_ms` is how long the shard may hold the answer back on purpose. A refusal
        is raised where the call is awaited, never here."""
        return self.links[shard].ask(ask, (self._timeout_s if timeout_s is None else timeout_s) + wait_ms / 1000)

    def recall(self, call: ShardCall) -> None:
        """End a wait early: the call is answered empty, or with a claim that was on its way."""
        self.links[call.shard].recall(call)

    def is_up(self, shard: int) -> bool:
        return self.links[shard].table.is_up

    def close(self) -> None:
        for link in self.links:
            link.close()
        self._context.term()
