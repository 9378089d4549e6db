"""arq."""

import asyncio
import os
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from board import from_environment

SETTINGS = RedisSettings.from_dsn(os.environ["RIVALS_URL"])
board = from_environment()
_loop: asyncio.AbstractEventLoop | None = None
_pool: Any = None


async def arrive(context: Any, number: int, padding: str) -> None:
    board.arrive(number)


class Worker:
    functions = [arrive]  # the name that arq expects
    redis_settings = SETTINGS
    keep_result = 0


def send(number: int) -> Any:
    global _loop, _pool
    if _loop is None:
        _loop = asyncio.new_event_loop()
        _pool = _loop.run_until_complete(create_pool(SETTINGS))
    return _loop.run_until_complete(_pool.enqueue_job("arrive", number, "x" * 80))
