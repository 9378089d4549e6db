"""Celery over Redis."""

import os
from typing import Any

from board import from_environment
from celery import Celery

app = Celery("rivals", broker=os.environ["RIVALS_URL"])
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
board = from_environment()


@app.task  # type: ignore[untyped-decorator]
def arrive(number: int, padding: str) -> None:
    board.arrive(number)


def send(number: int) -> Any:
    return arrive.delay(number, "x" * 80)
