"""Heartbeats of a node's processes: each writes the time to a file of its own, once a second, from its main loop.

Never from a side thread: that one would go on while the loop hangs. The supervisor kills a process whose heartbeat
stops for longer than the limit that the process wrote beside the time; `/livez` reads the same files. A process without
a file is not watched: one that has not begun its loop yet (it may have much to load), one that stops, and every one
when the limit is 0.

The clock is the system's monotonic one, which all processes share: a change of the date ends nobody.
"""

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

INTERVAL_NS = 1_000_000_000
SUFFIX = ".beat"
_CONTENT = struct.Struct("<qq")
_NEVER = 1 << 63

log = structlog.get_logger()


class LastBeat(msgspec.Struct, frozen=True):
    """What a file says: when it was written, and how long a silence its process allows."""

    at_ns: int
    limit_ns: int

    def silent_s(self, now_ns: int) -> float:
        return (now_ns - self.at_ns) / 1e9

    def is_late(self, now_ns: int) -> bool:
        return now_ns - self.at_ns > self.limit_ns


class ProcessHeartbeat:
    """Of this process. `beat` is called in every turn of the loop and writes once a second."""

    def __init__(
        self, run_dir: Path, process: str, limit_s: float, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._path = heartbeat_path(run_dir, process)
        self._limit_ns = int(limit_s * 1e9)
        self._clock_ns = clock_ns
        self._next_ns = 0 if limit_s else _NEVER
        self._file: int | None = None

    def beat(self) -> None:
        now_ns = self._clock_ns()
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + INTERVAL_NS
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._file, _CONTENT.pack(now_ns, self._limit_ns), 0)
        except OSError as error:
            log.warning("no heartbeat can be written: this process is not watched", reason=str(error))
            self.end()

    def end(self) -> None:
        """The loop has ended: whatever follows may take its time."""
        self._next_ns = _NEVER
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._path.unlink(missing_ok=True)


def heartbeat_path(run_dir: Path, process: str) -> Path:
    return run_dir / (process + SUFFIX)


def read_heartbeats(run_dir: Path) -> dict[str, LastBeat]:
    """The last beat of every process that is watched, by its name."""
    found = {}
    for path in sorted(run_dir.glob(f"*{SUFFIX}")):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue  # it stopped while we looked
        if len(content) == _CONTENT.size:  # else it is being written for the first time
            found[path.name.removesuffix(SUFFIX)] = LastBeat(*_CONTENT.unpack(content))
    return found
