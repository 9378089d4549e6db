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
from shards.raft.messages import Append
from tests.simulation.clock import MS, Events, T

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

State = dict[bytes, bytes]
Way = tuple[str, str]  # sender, receiver


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
        self.cuts: set[Way] = set()  # asked for membership only
        self.chokes: dict[Way, int] = {}  # since when messages on this way take longer and longer
        self.held: dict[Way, list[bytes]] = {}  # entries that are stuck; heartbeats have a lane of their own

    def send(self, message: AnyMessage, state: State | None = None) -> None:
        frame, way = encode(message), (message.sender, message.receiver)
        if way in self.held:
            if isinstance(message, Append) and message.entries:
                self.held[way].append(frame)
                return
            if isinstance(message, InstallSnapshot):
                self.release(way)
        weather, dice, seen = self.weather, self._dice, self._cluster.coverage
        copies = 1
        if weather.repeat and dice.random() < weather.repeat:
            copies = 2
            seen["messages repeated"] += 1
        for _ in range(copies):
            is_broken = state is not None and dice.random() < weather.stream_loss
            if is_broken or self._is_lost(way):
                seen["messages lost"] += 1
                if isinstance(message, InstallSnapshot):
                    self._events.after(self._delay_ns(way), self._report, message, False)
                continue
            delay_ns = self._delay_ns(way) + (dice.randrange(weather.stream_ns) if state is not None else 0)
            self._events.after(delay_ns, self._arrive, message.receiver, frame, state, 0)

    def carry(self, one: str, other: str, act: object, *args: object) -> None:
        """A call between a client and a host, or its answer: lost and delayed, not repeated."""
        if not self._is_lost((one, other)):
            self._events.after(self._delay_ns((one, other)), act, *args)  # type: ignore[arg-type]

    def release(self, way: Way) -> None:
        """What was held arrives now, in its order."""
        for number, frame in enumerate(self.held.pop(way, [])):
            self._cluster.coverage["appends held"] += 1
            self._events.after((1 + number) * MS, self._arrive, way[1], frame, None, 0)

    def heal(self) -> None:
        self.weather = CLEAR
        self.cuts.clear()
        self.chokes.clear()
        for way in list(self.held):
            self.release(way)

    def _is_lost(self, way: Way) -> bool:
        loss = self.weather.loss
        return way in self.cuts or (loss > 0 and self._dice.random() < loss)

    def _delay_ns(self, way: Way) -> int:
        weather, dice = self.weather, self._dice
        if way in self.chokes:
            return 1 + (self._events.now_ns - self.chokes[way]) * 7 // 10
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
            self._events.after(self._delay_ns((receiver, message.sender)), self._report, message, True)

    def _report(self, message: InstallSnapshot, is_ok: bool) -> None:
        """The sender learns how its stream ended, or it does not."""
        host = self._cluster.hosts[message.sender]
        if self._dice.random() < 0.5 and host.is_up and host.disk.incarnation == message.sender_incarnation:
            host.reports.append((message.receiver, is_ok))
            host.wake()
