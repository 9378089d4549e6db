"""The mirror's requests to one shard: one at a time, with a deadline.

A request ends when its deadline passes or the connection is lost. It is not repeated, because the mirror may need
something else by then. A late answer is ignored. The connection's own events wake the mirror, so that a shard that
comes back gets a request at once.

Synchronous: the loop of `follow.py` polls `socket` and `events`.
"""

import time
from typing import Any

import structlog
import zmq

from corvo.calls import CallTable, OpenCall
from corvo.endpoint import Query
from corvo.model.errors import Refusal
from corvo.queries.feed import FeedBatch, ScanPiece
from corvo.wire import Call
from gateway.shards.shard_socket import ShardSocket

log = structlog.get_logger()


class ShardQuestions:
    def __init__(self, context: "zmq.Context[Any]", shard: int, address: str) -> None:
        self._connection = ShardSocket(context, shard, address)
        self._table = CallTable(shard, waits_for_leader=False)  # any replica answers the mirror
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

    def ask(self, query: Query, deadline_ms: int, now: float) -> bool:
        """Sends the request, which cancels the one before it at both ends. False if it could not be sent."""
        forgotten = [] if self._call is None else [Call(self._call.call_id, 0, b"")]
        self.forget()
        call = OpenCall(query, now, now + deadline_ms / 1000)
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

    def receive(self) -> FeedBatch | ScanPiece | Refusal | None:
        """The answer to the request, if it has arrived."""
        for fault in self._table.receive(self._connection.receive(), time.monotonic()):
            log.error("result refused", shard=self._table.shard, reason=fault)
        if self._call is None or not self._call.is_over():
            return None
        answer: FeedBatch | ScanPiece | Refusal = self._call.outcome
        self._call = None
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
