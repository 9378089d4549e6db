"""Huey over Redis."""

import os
from typing import Any

from board import from_environment
from huey import RedisHuey

huey = RedisHuey("rivals", url=os.environ["RIVALS_URL"], results=False)
board = from_environment()


@huey.task()  # type: ignore[untyped-decorator]
def arrive(number: int, padding: str) -> None:
    board.arrive(number)


def send(number: int) -> Any:
    return arrive(number, "x" * 80)
