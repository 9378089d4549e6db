"""The time of day for the processes of a node. A test can move it forward; a server for anything else has the real one.

The movement is a number in a file of the data directory: all processes map it into memory, so a look at the clock costs
no system call. The file also marks the directory: its jobs have times of a future that has not come.
"""

import mmap
import time
from collections.abc import Callable
from pathlib import Path

MOVED = "moved-clock"  # in the data directory
_BYTES = 8

WallClock = Callable[[], int]


class MovedClock:
    """Nanoseconds since 1970, and as many more as the file says."""

    def __init__(self, data_dir: Path) -> None:
        with (data_dir / MOVED).open("r+b") as file:
            self._ahead = mmap.mmap(file.fileno(), _BYTES)

    def __call__(self) -> int:
        return time.time_ns() + int.from_bytes(self._ahead[:_BYTES], "little")

    def advance(self, span_ns: int) -> None:
        """Never back: the state of a shard does not take an earlier time."""
        if span_ns < 0:
            raise ValueError("a clock moves forward only")
        self._ahead[:_BYTES] = (int.from_bytes(self._ahead[:_BYTES], "little") + span_ns).to_bytes(_BYTES, "little")


def wall_clock(is_movable: bool, data_dir: Path) -> WallClock:
    return MovedClock(data_dir) if is_movable else time.time_ns


def mark(data_dir: Path) -> None:
    """Makes the file, unless it is there."""
    if not (data_dir / MOVED).exists():
        (data_dir / MOVED).write_bytes(bytes(_BYTES))
