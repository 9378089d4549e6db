"""RQ."""

import os
from typing import Any

from board import from_environment
from redis import Redis
from rq import Queue

queue = Queue("rivals", connection=Redis.from_url(os.environ["RIVALS_URL"]))
board = from_environment()


def arrive(number: int, padding: str) -> None:
    board.arrive(number)


def send(number: int) -> Any:
    return queue.enqueue("with_rq.arrive", number, "x" * 80, result_ttl=0)
