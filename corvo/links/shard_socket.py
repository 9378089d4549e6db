"""A ZeroMQ connection to one shard. Nothing here blocks.

`socket` and `events` are for the owner's poller. Their descriptors only signal edges: after each signal, and after each
send, everything that has arrived must be taken.
"""

import errno
from typing import Any

import structlog
import zmq
from zmq.utils.monitor import parse_monitor_message

from corvo.calls import CALLS_OPEN_MAX
from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.wire import Call, Reply, decode_replies, encode_calls

_READABLE = int(zmq.POLLIN)  # zmq's own is an enum, whose `&` makes an object each time

log = structlog.get_logger()


class ShardSocket:
    def __init__(self, context: "zmq.Context[Any]", shard: int, address: str) -> None:
        self._shard = shard
        self._address = address
        self.socket: zmq.Socket[Any] = context.socket(zmq.DEALER)
        self.socket.set_hwm(CALLS_OPEN_MAX)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing is queued for a shard that is not there
        self.socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 20)
        self.socket.setsockopt(zmq.RECONNECT_IVL_MAX, 100)
        self.socket.setsockopt(zmq.HEARTBEAT_IVL, 1_000)
        self.socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3_000)
        self.socket.setsockopt(zmq.HEARTBEAT_TTL, 3_000)
        self.events = self.socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        self.events.setsockopt(zmq.LINGER, 0)
        self.socket.connect(address)

    def send(self, calls: list[Call]) -> bool:
        """False: the connection broke just now, or the shard does not read."""
        try:
            self.socket.send(encode_calls(calls), zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def receive(self) -> list[Reply]:
        """Everything that has arrived."""
        found: list[Reply] = []
        socket: Any = self.socket
        while socket.getsockopt(zmq.EVENTS) & _READABLE:
            try:
                message = socket.recv(zmq.NOBLOCK)
                if not message:
                    continue  # the shard asks whether we are there: that it got through is the answer
                replies = decode_replies(message)
            except zmq.Again:
                break
            except ValueError as error:
                log.error("message of a shard refused", shard=self._shard, reason=str(error))
                continue
            found = found + replies if found else replies
        return found

    def changes(self) -> list[bool]:
        """What happened to the connection since the last look: True where it came up, False where it was lost."""
        found: list[bool] = []
        while self.events.getsockopt(zmq.EVENTS) & _READABLE:
            event = parse_monitor_message(self.events.recv_multipart(zmq.NOBLOCK))["event"]
            found.append(event == zmq.EVENT_HANDSHAKE_SUCCEEDED)
        if found and not found[-1]:
            self._connect_anew()
        return found

    def _connect_anew(self) -> None:
        """libzmq reconnects by itself to a peer that went away, but never after a message over MAXMSGSIZE."""
        try:
            self.socket.disconnect(self._address)
        except zmq.ZMQError as error:
            if error.errno != errno.ENOENT:  # it has given up the connection already
                raise
        self.socket.connect(self._address)

    def close(self) -> None:
        self.socket.disable_monitor()
        self.events.close(0)  # an open one would keep the context, and so the process, from ending
        self.socket.close(0)
