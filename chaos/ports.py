"""Ports for nodes that restart: a node must find its own port free when it comes back."""

import random

from corvo.cli.supervise.ports import free_row

HOST = "127.0.0.1"


def free_ports(consecutive: int, blocks: int) -> list[int]:
    """The first ports of `blocks` blocks of `consecutive` ports, all free now."""
    first = free_row(HOST, consecutive * blocks, random.Random())
    return [first + number * consecutive for number in range(blocks)]
