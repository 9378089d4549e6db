"""Dramatiq over Redis."""

import os
from typing import Any

import dramatiq
from board import from_environment
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(url=os.environ["RIVALS_URL"]))
board = from_environment()


@dramatiq.actor
def arrive(number: int, padding: str) -> None:
    board.arrive(number)


def send(number: int) -> Any:
    return arrive.send(number, "x" * 80)
