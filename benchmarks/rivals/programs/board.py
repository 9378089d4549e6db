"""A file of timestamps that several processes share: when each job was sent and when it arrived. Standard library only.

It is a memory-mapped file, so writing a timestamp costs a job no measurable time, in any process, thread or fork. The
clock is the machine's monotonic clock, the same in all processes.
"""

import mmap
import os
import struct
import time

JOBS_MAX = 1_000_000
_MOMENT = struct.Struct("<d")
_SIZE = 2 * JOBS_MAX * _MOMENT.size


class Board:
    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, _SIZE)
            self._memory = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)

    def set_out(self, number: int, at: float | None = None) -> None:
        """Records the time of sending: now, or when it was due."""
        _MOMENT.pack_into(self._memory, 16 * number, time.monotonic() if at is None else at)

    def arrive(self, number: int) -> None:
        _MOMENT.pack_into(self._memory, 16 * number + 8, time.monotonic())

    def sent_at(self, number: int) -> float:
        """0 if not sent yet."""
        return float(_MOMENT.unpack_from(self._memory, 16 * number)[0])

    def arrived_at(self, number: int) -> float:
        return float(_MOMENT.unpack_from(self._memory, 16 * number + 8)[0])


def from_environment() -> Board:
    return Board(os.environ["RIVALS_BOARD"])
