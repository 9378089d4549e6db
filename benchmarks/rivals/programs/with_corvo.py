"""Corvo's own Python worker, measured as the others are."""

import os

from board import from_environment

from corvo.worker import Corvo

app = Corvo(os.environ["RIVALS_URL"])
board = from_environment()


@app.task("rivals.arrive")
async def arrive(number: int, padding: str) -> None:
    board.arrive(number)


def send(number: int) -> None:
    arrive.enqueue(number, "x" * 80)
