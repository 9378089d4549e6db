"""`--reload`: a worker that starts again when a file of the program changes. For development."""

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LOOK_S = 0.3
STOP_S = 30.0
IGNORED = {"__pycache__", "node_modules"}

log = logging.getLogger("corvo.worker")

Seen = dict[Path, int]


def run_reloading(command: list[str], folder: Path | None = None) -> int:
    """Until a signal ends it. A worker that ended by itself waits for the next change."""
    place = folder or Path.cwd()
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _remember(stopping))
    while True:
        seen = look(place)
        worker = subprocess.Popen(command)
        changed = None
        while not stopping and (changed := difference(seen, look(place))) is None:
            time.sleep(LOOK_S)
        code = _end(worker)
        if stopping:
            return code
        sys.stderr.write(f"{changed} has changed: starting again\n")


def look(folder: Path) -> Seen:
    """When each file of the program was written last."""
    return dict(_written(folder))


def difference(before: Seen, after: Seen) -> Path | None:
    return next((path for path in sorted({*before, *after}) if before.get(path) != after.get(path)), None)


def _written(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in IGNORED:
            continue
        try:
            if path.is_dir() and not path.is_symlink():
                yield from _written(path)
            elif path.suffix == ".py":
                yield path, path.stat().st_mtime_ns
        except OSError:
            continue  # it went away meanwhile


def _end(worker: "subprocess.Popen[bytes]") -> int:
    if worker.poll() is None:
        worker.terminate()
    try:
        return worker.wait(STOP_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        return worker.wait()


def _remember(stopping: list[int]) -> Callable[[int, Any], None]:
    return lambda number, _: stopping.append(number)
