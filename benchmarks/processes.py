"""Child processes: started and ended by a handle, measured through /proc (Linux only).

No process is ended by name. A process tree is found from the pid of its handle.
"""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import corvo

ROOT = Path(corvo.__file__).parents[1]
LOG_CHARS_SHOWN = 2_000
STOP_S_MAX = 5.0  # no request is open when a benchmark stops a server

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class NotReady(Exception):
    """A program was not ready, or not idle, in time. The message has the end of its log."""


class Reading(NamedTuple):
    pid: int
    name: str  # shard-0, gateway-0, mirror, supervisor; else the command
    cpu_s: float  # user and system, since its start
    rss_bytes: int
    pss_bytes: int  # proportional share of shared pages; 0 if the kernel does not report it


class Program:
    """A child process with its log file and all its descendants."""

    def __init__(
        self,
        command: list[str],
        log: Path,
        cwd: Path = ROOT,
        pass_fds: tuple[int, ...] = (),
        environ: dict[str, str] | None = None,  # None: inherited, with the repository on the path
    ) -> None:
        self.log = log
        if environ is None:
            environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=file, stderr=file, pass_fds=pass_fds
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def pids(self) -> list[int]:
        """The child and all its descendants."""
        found = [self.pid]
        for pid in found:  # grows during the iteration
            found += _children(pid)
        return found

    def readings(self) -> list[Reading]:
        return [reading for pid in self.pids() if (reading := read(pid)) is not None]

    def cpu_s(self) -> float:
        return sum(reading.cpu_s for reading in self.readings())

    def await_ready(self, is_ready: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            code = self._process.poll()
            if code is not None:
                raise NotReady(f"{what} ended with code {code}: {self.log_end()}")
            if time.monotonic() > deadline:
                raise NotReady(f"{what} was not ready within {timeout_s:g} s: {self.log_end()}")
            time.sleep(0.01)

    def log_end(self) -> str:
        return self.log.read_text(errors="replace")[-LOG_CHARS_SHOWN:].strip() or "its log is empty"

    def stop(self, timeout_s: float = STOP_S_MAX) -> float:
        """Stops it cleanly, or by force if that takes too long. Returns the seconds it took."""
        started = time.monotonic()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
        return time.monotonic() - started

    def kill(self) -> None:
        """Kills all processes at once, like a power cut."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


def read(pid: int) -> Reading | None:
    """None if the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Reading(pid, _name_of(command), _cpu_s(pid, stat), int(stat[21]) * _PAGE_BYTES, _pss_bytes(pid))


def listening_socket() -> socket.socket:
    """A socket on a free port, passed to a child so that no other program can take the port."""
    event_wait = socket.socket()
    event_wait.bind(("127.0.0.1", 0))
    event_wait.listen(1024)
    return event_wait


def enqueues(address: tuple[str, int]) -> bool:
    """Whether the server accepts a job. A connection proves nothing: the socket listens before its program runs."""
    connection = http.client.HTTPConnection(*address, timeout=2.0)
    try:
        headers = {"content-type": "application/json"}
        connection.request("POST", "/api/v1/enqueue", b'{"queue":"first","payload":{}}', headers)
        return connection.getresponse().status == 201
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _cpu_s(pid: int, stat: list[str]) -> float:
    """From the scheduler, in nanoseconds: the ticks of /proc/pid/stat are too coarse for an idle process."""
    spent_ns = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            spent_ns += int((task / "schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return (int(stat[11]) + int(stat[12])) / _TICKS_PER_S
    return spent_ns / 1e9


def _pss_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def _name_of(command: list[str]) -> str:
    for module, name in (("gateway.mirror", "mirror"), ("corvo.cli.main", "supervisor")):
        if module in command:
            return name
    for role in ("shard", "gateway"):
        if f"--{role}" in command:
            return f"{role}-{command[command.index(f'--{role}') + 1]}"
    return " ".join(command[:3])
