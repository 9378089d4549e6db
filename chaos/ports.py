"""Ports for nodes that come and go.

They lie below the range from which the kernel serves outgoing connections: a node that was away must find its own free
when it comes back.
"""

import random
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

HOST = "127.0.0.1"
FIRST = 10_240
IANA_FIRST_OUTGOING = 49_152
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(consecutive: int, blocks: int) -> list[int]:
    """The first ports of so many blocks, all free at this moment."""
    dice = random.Random()
    end = _first_outgoing_port() - consecutive
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < blocks:
            first = dice.randrange(FIRST, end)
            if _hold(held, range(first, first + consecutive)):
                found.append(first)
    return found


def _hold(held: ExitStack, ports: Iterable[int]) -> bool:
    """Bind all of them, or none."""
    with ExitStack() as block:
        for port in ports:
            holder = block.enter_context(socket.socket())
            try:
                holder.bind((HOST, port))
            except OSError:
                return False
        held.push(block.pop_all())
    return True


def _first_outgoing_port() -> int:
    if not _OUTGOING.exists():
        return IANA_FIRST_OUTGOING
    first = int(_OUTGOING.read_text().split()[0])
    return first if first > 2 * FIRST else IANA_FIRST_OUTGOING
