"""What Raft asks for, handed to the replica in order; and the talk with the others while the disk is slow.

A replica that waits for its disk changes nothing: it only hears the others out, lets time pass and says what need not
wait for a disk, heartbeats and the answers to them. All else that Raft wants done meanwhile is put off, and done in one
write when the disk is back.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from shards import raft
from shards.group.members import Members
from shards.group.messages import PeerMessage, RaftMessage

HEARD_MAX = 1_024  # letters of other kinds that are kept meanwhile; more wait where they are


class RaftDriver:
    def __init__(self, core: raft.Raft, members: Members, hear: Callable[[], list[PeerMessage]]) -> None:
        self._core = core
        self._members = members
        self._hear = hear
        self._heard: deque[PeerMessage] = deque()
        self._put_off: list[raft.Ready] = []

    @property
    def has_more(self) -> bool:
        return bool(self._heard or self._put_off)

    def receive_heard(self, now_ns: int) -> None:
        while self._heard:
            self._members.receive(self._heard.popleft(), now_ns)

    def take(self) -> list[raft.Ready]:
        """What was put off comes first, and alone. Empty when Raft wants nothing."""
        if self._put_off:
            readies, self._put_off = self._put_off, []
            return readies
        ready = self._core.ready()
        return [] if ready is None else [ready]

    def send_now(self, ready: raft.Ready, now_ns: int) -> list[raft.InstallSnapshot]:
        """Say what need not wait. Returned: states, which are sent from the disk and therefore wait for it."""
        states = []
        for message in ready.send_now:
            if isinstance(message, raft.InstallSnapshot):
                states.append(message)
            else:
                self._members.post(message, now_ns)
        return states

    def go_on(self, now_ns: int) -> None:
        """Called while the disk is slow."""
        if len(self._heard) < HEARD_MAX:
            for posted in self._hear():
                if isinstance(posted.body, RaftMessage):
                    self._members.receive(posted, now_ns)
                else:
                    self._heard.append(posted)
        self._core.tick(now_ns)
        while (ready := self._core.ready()) is not None:
            states: list[raft.AnyMessage] = [*self.send_now(ready, now_ns)]
            self._put_off.append(msgspec.structs.replace(ready, send_now=states))
