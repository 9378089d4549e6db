"""The mirror's end of the line to one shard: one question at a time, by id, with a deadline.

ZeroMQ may lose a question or its answer, and a restarted shard knows nothing of what its predecessor was asked. So a
question is given up when its deadline passes or the line drops, and is asked again under a new id; an answer with an
id that is not awaited is ignored. The line's own events come from a monitor socket, so that a shard that comes back
is asked at once and not after a parked question's twenty seconds.

Synchronous and not thread-safe: it belongs to the loop of `follow.py`, which polls `socket` and `events`.
"""

import errno

import zmq
from zmq.utils.monitor import recv_monitor_message

from corvo.endpoint import Query
from corvo.model.errors import Refusal
from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.queries.feed import FeedBatch, ScanPiece
from corvo.wire import Call, decode_replies, decode_result, encode, encode_calls

_HEARTBEAT_MS, _HEARTBEAT_TIMEOUT_MS = 1000, 3000


class ShardLink:
    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]", address: str) -> None:
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.IMMEDIATE, 1)
        self.socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        self.socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        self.socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _HEARTBEAT_TIMEOUT_MS)
        self.socket.setsockopt(zmq.HEARTBEAT_TTL, _HEARTBEAT_TIMEOUT_MS)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 50)
        self.socket.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
        self.events = self.socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        self.events.setsockopt(zmq.LINGER, 0)
        self._address = address
        self.socket.connect(address)
        self.is_up = False
        self._asked: Query | None = None
        self._id = 0
        self._deadline_at = 0.0

    @property
    def is_asking(self) -> bool:
        return self._asked is not None

    @property
    def deadline_at(self) -> float:
        return self._deadline_at

    def ask(self, query: Query, deadline_ms: int, now: float) -> bool:
        """Send the question; what was asked before is forgotten at both ends. False: it could not be sent."""
        calls = [Call(self._id, 0, b"")] if self._asked is not None else []
        self._id += 1
        calls.append(Call(self._id, deadline_ms, encode(query)))
        try:
            self.socket.send(encode_calls(calls), zmq.NOBLOCK)
        except zmq.Again:
            self._asked = None
            return False
        self._asked = query
        self._deadline_at = now + deadline_ms / 1000
        return True

    def forget(self) -> None:
        self._asked = None

    def hurry(self) -> None:
        """Do not wait for the answer: something else is to be asked."""
        self._deadline_at = 0.0

    def receive(self) -> FeedBatch | ScanPiece | Refusal | None:
        """The answer to the question, if it is among what has arrived."""
        answer: FeedBatch | ScanPiece | Refusal | None = None
        while True:
            try:
                message = self.socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return answer
            for reply in decode_replies(message):
                if self._asked is None or reply.id != self._id:
                    continue
                try:
                    answer = decode_result(type(self._asked), reply)
                except Refusal as refusal:
                    answer = refusal
                self._asked = None

    def notice(self) -> bool:
        """Take in what happened to the line. True when it dropped: whatever was asked is lost."""
        has_dropped = False
        while self.events.poll(0):
            event = recv_monitor_message(self.events)["event"]
            self.is_up = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            if not self.is_up:
                has_dropped = True
            self._asked = None
        if has_dropped and not self.is_up:
            self._connect_anew()
        return has_dropped

    def _connect_anew(self) -> None:
        """libzmq comes back by itself from a peer that went away, but never from a frame over MAXMSGSIZE."""
        try:
            self.socket.disconnect(self._address)
        except zmq.ZMQError as error:
            if error.errno != errno.ENOENT:  # it has given the line up already
                raise
        self.socket.connect(self._address)

    def close(self) -> None:
        self.socket.disable_monitor()
        self.events.close()
        self.socket.close()
