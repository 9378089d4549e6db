"""A connection to one shard with at most one request under way, for the mirror and for couriers.

A request is given up when its deadline passes or the connection is lost, and another is sent: by then the owner may
want something else. An answer to a request that was given up is ignored. The connection's own events wake the owner, so
that a shard that comes back is asked at once.

Synchronous: the owner polls `socket` and `events`.
"""

import time
from typing import Any

import structlog
import zmq

from corvo.calls import CallTable, OpenCall
from corvo.endpoint import Operation, Query
from corvo.links.shard_socket import ShardSocket
from corvo.wire import Call

log = structlog.get_logger()


class SerialLink:
    def __init__(self, context: "zmq.Context[Any]", shard: int, address: str) -> None:
        self._connection = ShardSocket(context, shard, address)
        self._table = CallTable(shard, waits_for_leader=False)  # the owner decides what to ask next
        self._call: OpenCall | None = None
        self.deadline_at = 0.0

    @property
    def socket(self) -> "zmq.Socket[Any]":
        return self._connection.socket

    @property
    def events(self) -> Any:
        return self._connection.events

    @property
    def is_up(self) -> bool:
        return self._table.is_up

    @property
    def is_asking(self) -> bool:
        return self._call is not None

    def ask(self, ask: Operation | Query, deadline_ms: int, now: float) -> bool:
        """Sends the request, which cancels the one before it at both ends. False if it could not be sent."""
        forgotten = [] if self._call is None else [Call(self._call.call_id, 0, b"")]
        self.forget()
        call = OpenCall(ask, now, now + deadline_ms / 1000)
        self._table.add(call)
        self._table.send(now, lambda calls: self._connection.send(forgotten + calls))
        if not call.is_sent:
            self._table.drop(call)
            return False
        self._call, self.deadline_at = call, call.deadline
        return True

    def forget(self) -> None:
        if self._call is not None:
            self._table.drop(self._call)
            self._call = None

    def hurry(self) -> None:
        """Stops waiting for the answer: another request is due."""
        self.deadline_at = 0.0

    def receive(self) -> Any:
        """The answer to the request, a result or a `Refusal`; None if it has not arrived."""
        for fault in self._table.receive(self._connection.receive(), time.monotonic()):
            log.error("result refused", shard=self._table.shard, reason=fault)
        if self._call is None or not self._call.is_over():
            return None
        answer, self._call = self._call.outcome, None
        return answer

    def notice(self) -> bool:
        """Reads the connection's events. True if it was lost, and the request with it."""
        changes = self._connection.changes()
        if not changes:
            return False
        self.forget()
        if changes[-1]:
            self._table.come_up()
        else:
            self._table.go_down()
        return False in changes

    def close(self) -> None:
        self._connection.close()
