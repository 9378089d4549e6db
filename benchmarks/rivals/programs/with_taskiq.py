"""Taskiq, with its Redis list broker."""

import asyncio
import os
from typing import Any

from board import from_environment
from taskiq_redis import ListQueueBroker

broker = ListQueueBroker(os.environ["RIVALS_URL"])
board = from_environment()
_loop: asyncio.AbstractEventLoop | None = None


@broker.task
async def arrive(number: int, padding: str) -> None:
    board.arrive(number)


def send(number: int) -> Any:
    global _loop
    if _loop is None:
        _loop = asyncio.new_event_loop()
        _loop.run_until_complete(broker.startup())
    return _loop.run_until_complete(arrive.kiq(number, "x" * 80))
