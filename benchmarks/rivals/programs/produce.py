"""`python produce.py MODULE --first N --count N | --seconds S [--rate R]`: sends jobs and prints how many, as JSON.

The module has `send(number)`, which returns when the job is accepted, as a user of the library would call it.
"""

import argparse
import importlib
import json
import time

from board import JOBS_MAX, from_environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=JOBS_MAX)
    parser.add_argument("--seconds", type=float, default=3_600.0)
    parser.add_argument("--rate", type=float, help="jobs a second; as fast as possible when not given")
    options = parser.parse_args()
    rival, board = importlib.import_module(options.module), from_environment()
    numbers = range(options.first, min(options.first + options.count, JOBS_MAX))
    started = time.monotonic()
    sent = 0
    for number in numbers:
        due = None
        if options.rate:
            due = started + sent / options.rate
            time.sleep(max(due - time.monotonic(), 0.0))
        elif time.monotonic() - started > options.seconds:
            break
        board.set_out(number, due)
        rival.send(number)
        sent += 1
    print(json.dumps({"sent": sent, "seconds": time.monotonic() - started}))


if __name__ == "__main__":
    main()
