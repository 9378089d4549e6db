"""Ports of this machine: whether one is free, and where several in a row are."""

import random
from pathlib import Path

from corvo.runtime.addresses import PORT_MAX
from corvo.runtime.process import open_listener

PORT_MIN = 10_000  # below live the well-known services
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_EPHEMERAL_FIRST = 32_768  # where the kernel does not say


class NoPorts(Exception):
    """There is no free range of ports of this size."""


def listen_once(host: str, port: int) -> int:
    """The port on which a server could listen there now, chosen by the kernel for 0. OSError when none could."""
    with open_listener(host, port) as probe:
        return int(probe.getsockname()[1])


def free_row(host: str, count: int, dice: random.Random) -> int:
    """The first port of a free range of `count` ports. If possible it is below the range that the kernel uses for
    outgoing connections: a port that is stored for a later start must not be taken meanwhile."""
    border = _ephemeral_first()
    for first, last in ((PORT_MIN, border - 1), (max(border, PORT_MIN), PORT_MAX - 1)):
        starts = range(first, last - count + 2)
        if not starts:
            continue
        offset = dice.randrange(len(starts))  # two callers at the same time should not find the same range
        taken: int | None = None
        for step in range(len(starts)):
            start = starts[(offset + step) % len(starts)]
            if taken is not None and start <= taken < start + count:
                continue
            taken = _last_taken(host, start, count)
            if taken is None:
                return start
    raise NoPorts(f"no {count} ports in a row are free on {host}")


def _last_taken(host: str, first: int, count: int) -> int | None:
    """From the end, so that the search can continue after it."""
    for port in reversed(range(first, first + count)):
        try:
            listen_once(host, port)
        except OSError:
            return port
    return None


def _ephemeral_first() -> int:
    try:
        return int(_EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _EPHEMERAL_FIRST
