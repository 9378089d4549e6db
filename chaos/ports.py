"""Ports for nodes that come and go: a node that was away must find its own free when it comes back."""

import random

from corvo.cli.supervise.ports import free_row

HOST = "127.0.0.1"


def free_ports(consecutive: int, blocks: int) -> list[int]:
    """The first ports of so many blocks, all free at this moment."""
    first = free_row(HOST, consecutive * blocks, random.Random())
    return [first + number * consecutive for number in range(blocks)]
