"""The shard's loop: the only place that polls sockets and sleeps.

It gives the replica, and the parts beside it, a turn whenever something arrives or one of them wants one.
"""

import os
import signal
import time
from collections.abc import Iterable
from types import FrameType

import zmq

from shards.intake.callers import CallSocket
from shards.replica import Replica
from shards.turn import TurnList, TurnPart

SLEEP_MS_MAX = 1_000
WAKE_BYTES = 4_096  # read at once; a pipe that holds more is read again by the next poll
HAND_OVER_S = 1.5  # how long an ending replica waits for another one to lead


class Loop:
    def __init__(
        self,
        replica: Replica,
        callers: CallSocket,
        poller: zmq.Poller,
        sockets: "Iterable[zmq.Socket[bytes]]" = (),
        others: Iterable[TurnPart] = (),
    ) -> None:
        """`others` take their turns after the replica; `sockets` are theirs and the replica's, to wake for."""
        self._replica = replica
        self._callers = callers
        self._parts = TurnList(replica, *others)
        self._poller = poller
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        for socket in (callers.socket, *sockets):
            poller.register(socket, zmq.POLLIN)
        poller.register(self._wake_reader, zmq.POLLIN)
        self._is_stopping = False

    def stop(self, signum: int = 0, frame: FrameType | None = None) -> None:
        self._is_stopping = True

    def run(self) -> None:
        # A signal must end the poll at once: Python would go on with the rest of its timeout.
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        self._callers.listen()
        self._turn()
        while not self._is_stopping:
            self._sleep()
            self._turn()
        self._hand_over()

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def _turn(self) -> None:
        self._parts.turn(time.monotonic_ns())

    def _sleep(self) -> None:
        replica = self._replica
        timeout_ms = self._timeout_ms()
        while replica.may_warm and timeout_ms:
            if self._poll(0):
                return
            replica.warm()
        if self._poll(timeout_ms) and not replica.has_others:
            # On a busy machine, let a caller that is about to send more do so: one turn and one sync for all of it. Not
            # where others count on hearing from us.
            os.sched_yield()

    def _timeout_ms(self) -> int:
        next_ns = self._parts.next_ns()
        if next_ns is None:
            return SLEEP_MS_MAX
        # Rounded up: waking a millisecond late beats spinning through the last one.
        return min(max(-(-(next_ns - time.monotonic_ns()) // 1_000_000), 0), SLEEP_MS_MAX)

    def _poll(self, timeout_ms: int) -> bool:
        """Whether something arrived, or a signal did."""
        ready = self._poller.poll(timeout_ms)
        if (self._wake_reader, zmq.POLLIN) in ready:
            os.read(self._wake_reader, WAKE_BYTES)  # else every later poll would return at once
        return bool(ready)

    def _hand_over(self) -> None:
        """A leader that ends on purpose names a successor, so that the others need not wait for an election."""
        replica = self._replica
        if not (replica.raft.is_leader and replica.has_others):
            return
        deadline = time.monotonic() + HAND_OVER_S
        if not replica.members.hand_over():
            return
        while replica.raft.is_leader and time.monotonic() < deadline:
            self._turn()
            self._poll(5)
        self._turn()  # callers that waited here are told to ask again
