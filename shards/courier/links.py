"""The courier's connections: one to every other shard of the node.

What cannot be sent, or gets lost, is sent again by the courier. A connection is polled only while an answer is awaited
on it: polling all of them would cost every turn of a shard that has no errands.
"""

from typing import Any, Protocol

import zmq

from corvo.links.serial_link import SerialLink
from shards.courier.deliveries import PATIENCE_MS, Courier

NOTICE_EVERY_NS = 1_000_000_000  # of connections without errands, whose events must not pile up


class Deliverer(Protocol):
    def come_back(self, courier: Courier, now_ns: int) -> None:
        """Give the courier the answers that arrived."""

    def go(self, courier: Courier, now_ns: int) -> None:
        """Send what the courier has to deliver."""


class NoDeliverer:
    """Of a shard that is the only one of its node."""

    def come_back(self, courier: Courier, now_ns: int) -> None:
        pass

    def go(self, courier: Courier, now_ns: int) -> None:
        pass


class CourierLinks:
    def __init__(self, context: zmq.Context[Any], addresses: dict[int, str], poller: zmq.Poller) -> None:
        """`poller` is what the shard's loop sleeps on: it wakes when an answer arrives."""
        self._links = {shard: SerialLink(context, shard, address) for shard, address in addresses.items()}
        self._watched: set[int] = set()
        self._poller = poller
        self._notice_at_ns = 0

    def go(self, courier: Courier, now_ns: int) -> None:
        for target, delivery in courier.set_out(now_ns):
            link = self._links[target]
            link.notice()
            if link.ask(delivery, PATIENCE_MS, now_ns / 1e9):
                self._watch(target)
            else:
                courier.turn_back(target, now_ns)

    def come_back(self, courier: Courier, now_ns: int) -> None:
        for shard in sorted(self._watched):
            link = self._links[shard]
            if link.notice():
                courier.turn_back(shard, now_ns)
            elif (answer := link.receive()) is not None:
                courier.come_back(shard, answer, now_ns)
            if not courier.awaits(shard):  # a late answer stays there until the connection is used again
                link.forget()
                self._unwatch(shard)
        if now_ns >= self._notice_at_ns:
            self._notice_at_ns = now_ns + NOTICE_EVERY_NS
            for shard in self._links.keys() - self._watched:
                self._links[shard].notice()

    def _watch(self, shard: int) -> None:
        if shard not in self._watched:
            self._watched.add(shard)
            for socket in (self._links[shard].socket, self._links[shard].events):
                self._poller.register(socket, zmq.POLLIN)

    def _unwatch(self, shard: int) -> None:
        self._watched.discard(shard)
        for socket in (self._links[shard].socket, self._links[shard].events):
            self._poller.unregister(socket)

    def close(self) -> None:
        for link in self._links.values():
            link.close()
