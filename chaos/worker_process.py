"""A `corvo worker` of the app in `worker_app.py`, in a process of its own, and what its handlers wrote."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from chaos.node import wait_until

BEGIN_S = 60.0
END_S = 60.0


class Line(NamedTuple):
    what: str  # begun, step, done
    job_id: str
    lease_token: int
    number: int


class WorkerProcess:
    def __init__(self, folder: Path, servers: Sequence[str], queues: str, *flags: str) -> None:
        self._log = folder / f"{queues}.lines"
        self._errors = folder / f"{queues}.log"
        command = [sys.executable, "-m", "corvo.cli.main", "worker", "chaos.worker_app:app", *flags]
        environ = {
            **os.environ,
            "CHAOS_LOG": str(self._log),
            "CHAOS_QUEUES": queues,
            "CORVO_SERVER": ",".join(servers),
        }
        with self._errors.open("ab") as errors:
            root = Path(__file__).resolve().parents[1]
            self._handle = subprocess.Popen(command, cwd=root, env=environ, stdout=errors, stderr=errors)

    def lines(self) -> list[Line]:
        text = self._log.read_text() if self._log.exists() else ""
        return [Line(what, job, int(token), int(number)) for what, job, token, number in map(str.split, _whole(text))]

    def done(self) -> int:
        return sum(line.what == "done" for line in self.lines())

    def await_done(self, count: int) -> None:
        wait_until(lambda: self.done() >= count or not self.is_running, f"{count} jobs to be done", BEGIN_S)
        if not self.is_running:
            raise RuntimeError(f"the worker ended:\n{self.told()}")

    @property
    def is_running(self) -> bool:
        return self._handle.poll() is None

    def told(self) -> str:
        return self._errors.read_text()

    @property
    def exit_code(self) -> int | None:
        return self._handle.poll()

    def signal(self, number: int) -> None:
        self._handle.send_signal(number)

    def stop(self) -> tuple[int, float]:
        """Sends SIGTERM. The exit code, and the seconds it took."""
        started = time.monotonic()
        self._handle.send_signal(signal.SIGTERM)
        try:
            return self._handle.wait(END_S), time.monotonic() - started
        finally:
            self.kill()

    def kill(self) -> None:
        if self._handle.poll() is None:
            self._handle.kill()
            self._handle.wait()


def _whole(text: str) -> list[str]:
    return text[: text.rfind("\n") + 1].splitlines()
