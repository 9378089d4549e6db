"""beanstalkd, through greenstalk. `python with_beanstalkd.py` is a worker."""

import json
import os
from typing import Any
from urllib.parse import urlsplit

import greenstalk
from board import from_environment

url = urlsplit(os.environ["RIVALS_URL"])
client = greenstalk.Client((url.hostname, url.port), use="rivals", watch=["rivals"])
board = from_environment()


def send(number: int) -> Any:
    return client.put(json.dumps([number, "x" * 80]))


def work() -> None:
    while True:
        job = client.reserve()
        board.arrive(json.loads(job.body)[0])
        client.delete(job)


if __name__ == "__main__":
    work()
