"""How a node with an empty data directory becomes one of several: it asks the others first.

`python -m shards.group.bootstrap` finds the other nodes, agrees with them on a cluster, writes identity.json and ends.
It waits for the others without a limit; a signal ends the wait.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from corvo.cli.supervise.signals import heeding
from corvo.runtime.process import RUN

BOOTSTRAP = (sys.executable, "-m", "shards.group.bootstrap", "--run-dir", RUN)
REFUSED = 2  # exit code of a configuration error, which standard error explains
PATIENCE_S = 5.0  # how long it may take to end after a signal
TURN_S = 0.5


class NotFounded(Exception):
    """Why there is no cluster, in a sentence."""


def find_cluster(data_dir: Path, command: Sequence[str] = BOOTSTRAP) -> bool:
    """Whether a cluster was found or founded; False when a signal ended the wait."""
    with _Stop().heeded() as stop:
        # A group of its own: what is typed at the terminal comes to us, and from us once.
        stop.child = subprocess.Popen(command, cwd=data_dir, stderr=subprocess.PIPE, text=True, process_group=0)
        complaint = stop.watch()
    code = stop.child.returncode
    if stop.number:
        return False
    if code == 0:
        return True
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    if code == REFUSED and lines:
        raise NotFounded(lines[-1].removeprefix("corvo: "))
    if lines:
        print(complaint.rstrip("\n"), file=sys.stderr)
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    raise NotFounded(f"the search for the other nodes ended with {ended}; its own lines above say why")


class _Stop:
    """A signal that arrived, passed on to the process."""

    def __init__(self) -> None:
        self.number = 0
        self.child: subprocess.Popen[str] | None = None
        self._deadline = float("inf")

    @contextmanager
    def heeded(self) -> "Iterator[_Stop]":
        with heeding(self._receive):
            yield self

    def watch(self) -> str:
        """What it said on standard error until it ended."""
        assert self.child is not None
        if self.number:  # it came before the process was there
            self.child.terminate()
        while True:
            try:
                return self.child.communicate(timeout=TURN_S)[1]
            except subprocess.TimeoutExpired:
                if time.monotonic() > self._deadline:
                    self.child.kill()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self._deadline = min(self._deadline, time.monotonic() + PATIENCE_S)
        if self.child is not None:
            self.child.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)
