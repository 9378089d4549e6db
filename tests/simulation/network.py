"""A network that loses, repeats, reorders, delays and cuts, also in one direction only.

Messages cross the wire format. What is sent to a process that is down may be kept for its next life, as ZeroMQ
does. A snapshot travels as a copy of the sender's state beside its message; whether the sender hears of the end of
the stream is a matter of luck too.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import msgspec

from shards.raft import AnyMessage, InstallSnapshot, decode, encode
from tests.simulation.clock import MS, Events, T

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

State = dict[bytes, bytes]


class Weather(msgspec.Struct, frozen=True):
    """How bad the network of a seed is."""

    loss: float = 0.0
    repeat: float = 0.0
    slow: float = 0.0  # share of messages that arrive up to three election timeouts late
    delay_ns: int = 5 * MS
    keep: float = 0.0  # share of messages for a dead process that wait for its next life
    stream_loss: float = 0.0  # share of snapshots that break on the way
    stream_ns: int = 20 * MS  # how long one is under way at most


CLEAR = Weather()


class Network:
    def __init__(self, cluster: Cluster, events: Events, dice: random.Random, weather: Weather) -> None:
        self._cluster = cluster
        self._events = events
        self._dice = dice
        self.weather = weather
        self.cuts: set[tuple[str, str]] = set()  # (sender, receiver); asked for membership only

    def send(self, message: AnyMessage, state: State | None = None) -> None:
        frame = encode(message)
        weather, dice, seen = self.weather, self._dice, self._cluster.coverage
        copies = 1
        if weather.repeat and dice.random() < weather.repeat:
            copies = 2
            seen["messages repeated"] += 1
        for _ in range(copies):
            is_broken = state is not None and dice.random() < weather.stream_loss
            if is_broken or self._is_lost(message.sender, message.receiver):
                seen["messages lost"] += 1
                if isinstance(message, InstallSnapshot):
                    self._events.after(self._delay_ns(), self._report, message, False)
                continue
            delay_ns = self._delay_ns() + (dice.randrange(weather.stream_ns) if state is not None else 0)
            self._events.after(delay_ns, self._arrive, message.receiver, frame, state, 0)

    def carry(self, one: str, other: str, act: object, *args: object) -> None:
        """A call between a client and a host, or its answer: lost and delayed, not repeated."""
        if not self._is_lost(one, other):
            self._events.after(self._delay_ns(), act, *args)  # type: ignore[arg-type]

    def _is_lost(self, sender: str, receiver: str) -> bool:
        loss = self.weather.loss
        return (sender, receiver) in self.cuts or (loss > 0 and self._dice.random() < loss)

    def _delay_ns(self) -> int:
        weather, dice = self.weather, self._dice
        if weather.slow and dice.random() < weather.slow:
            return dice.randrange(3 * T)
        return 1 + dice.randrange(weather.delay_ns)

    def _arrive(self, receiver: str, frame: bytes, state: State | None, tries: int) -> None:
        host = self._cluster.hosts.get(receiver)
        message = decode(frame)
        if host is None or (message.sender, receiver) in self.cuts:
            return
        if not host.is_up:
            if tries < 5 and self.weather.keep and self._dice.random() < self.weather.keep:
                self._cluster.coverage["messages kept for the next life"] += 1
                self._events.after(T // 2, self._arrive, receiver, frame, state, tries + 1)
            elif isinstance(message, InstallSnapshot):
                self._report(message, False)
            return
        host.receive(message, state)
        if isinstance(message, InstallSnapshot):
            self._events.after(self._delay_ns(), self._report, message, True)

    def _report(self, message: InstallSnapshot, is_ok: bool) -> None:
        """The sender learns how its stream ended, or it does not."""
        host = self._cluster.hosts[message.sender]
        if self._dice.random() < 0.5 and host.is_up and host.disk.incarnation == message.sender_incarnation:
            host.reports.append((message.receiver, is_ok))
            host.wake()
