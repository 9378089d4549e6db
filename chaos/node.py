"""A node of real processes: started in its own directory, or found by its data directory."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import msgspec

from corvo.runtime.addresses import split_address
from corvo.runtime.process import RUN, read_settings
from corvo.runtime.settings import Settings

START_S = 40.0  # for a busy machine; the benchmarks measure how fast a start is
_ROLES = {"gateway.mirror": "mirror", "gateway": "gateway", "shards": "shard"}


class Process(msgspec.Struct, frozen=True):
    role: str  # "gateway-0", "mirror", "shard-0", …
    pid: int


class Node:
    """A server whose processes can be listed and killed. `stop` ends a server that was started here, by its handle."""

    def __init__(self, data_dir: Path, supervisor_pid: int, handle: "subprocess.Popen[bytes] | None" = None) -> None:
        self.data_dir = data_dir
        self.supervisor_pid = supervisor_pid
        self._handle = handle

    @classmethod
    def start(cls, data_dir: Path, *flags: str, log: Path | None = None) -> "Node":
        """Starts `corvo server` on a free port and waits until it is ready."""
        node = cls.launch(data_dir, *flags, log=log)
        try:
            node.await_healthy(START_S)
        except BaseException:
            node.kill_all()
            raise
        return node

    @classmethod
    def launch(cls, data_dir: Path, *flags: str, log: Path | None = None) -> "Node":
        """Starts it without waiting: a node of a cluster becomes ready only with the others."""
        data_dir.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "corvo.cli.main", "server", "--data-dir", str(data_dir)]
        if "--bind" not in flags:
            command += ["--bind", "127.0.0.1:0"]
        output = (log or data_dir / "server.log").open("ab")
        root = Path(__file__).resolve().parents[1]
        with output:
            handle = subprocess.Popen([*command, *flags], stdout=output, stderr=subprocess.STDOUT, cwd=root)
        return cls(data_dir, handle.pid, handle)

    @classmethod
    def attach(cls, data_dir: Path) -> "Node":
        """Attaches to a running server."""
        return cls(data_dir, int((data_dir / "lock").read_text()))

    def await_healthy(self, seconds: float) -> float:
        return wait_until(lambda: self._has_settings() and self.is_healthy(), "the server to be healthy", seconds)

    def _has_settings(self) -> bool:
        if self._handle is not None and self._handle.poll() is not None:
            raise RuntimeError(f"the server ended with {self._handle.returncode}; see {self.data_dir}/server.log")
        # The file of an earlier run has an old port: wait for the file that this run writes.
        path, lock = self.data_dir / RUN / "settings.json", self.data_dir / "lock"
        return path.exists() and lock.read_text() == str(self.supervisor_pid) and bool(self.processes())

    @property
    def settings(self) -> Settings:
        return read_settings(self.data_dir / RUN)

    @property
    def url(self) -> str:
        host, port = split_address(self.settings.bind)
        scheme = "https" if self.settings.tls_cert else "http"
        return f"{scheme}://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"

    def is_healthy(self) -> bool:
        try:
            # No verification is needed: the request carries no data.
            return httpx.get(f"{self.url}/healthz", timeout=2.0, verify=False).status_code == 200
        except httpx.HTTPError:
            return False

    def processes(self) -> list[Process]:
        """The supervisor's children, with their roles."""
        found = []
        for pid, arguments in self._children():
            role = _ROLES.get(arguments[arguments.index("-m") + 1]) if "-m" in arguments else None
            if role is not None:
                number = f"-{arguments[arguments.index(f'--{role}') + 1]}" if f"--{role}" in arguments else ""
                found.append(Process(role + number, pid))
        return sorted(found, key=lambda process: process.role)

    def _children(self) -> Iterator[tuple[int, list[str]]]:
        """Pid and command line."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                arguments = (entry / "cmdline").read_bytes().decode().split("\0")
            except (OSError, ValueError, IndexError):
                continue  # it ended meanwhile
            if parent == self.supervisor_pid:
                yield int(entry.name), arguments

    def pid_of(self, role: str) -> int | None:
        """For a role without a number, the first of its kind."""
        return next((process.pid for process in self.processes() if process.role in (role, f"{role}-0")), None)

    def kill(self, role: str, signum: int = signal.SIGKILL) -> int:
        """Kills a process and returns its pid. Waits until it exists: it may be restarting after the last kill."""
        wait_until(lambda: self.pid_of(role) is not None, f"{role} to be running", 10.0)
        pid = self.pid_of(role)
        assert pid is not None
        os.kill(pid, signum)
        return pid

    def kill_all(self) -> None:
        """Kills the whole node at once, like a power cut. Stops the supervisor first, so that it restarts nothing
        meanwhile."""
        assert self._handle is not None, "only a server that was started here is killed here"
        if self._handle.poll() is None:
            self._handle.send_signal(signal.SIGSTOP)
            for pid, _ in self._children():
                os.kill(pid, signal.SIGKILL)
            self._handle.kill()
        self._handle.wait()

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        assert self._handle is not None, "only a server that was started here has an exit code"
        return self._handle.poll()

    def stop(self) -> int:
        """Stops the server cleanly. Returns its exit code."""
        assert self._handle is not None, "only a server that was started here is stopped here"
        if self._handle.poll() is None:
            self._handle.terminate()
        try:
            return self._handle.wait(60.0)
        except subprocess.TimeoutExpired:
            self._handle.kill()
            self._handle.wait()
            raise


def wait_until(is_true: Callable[[], bool], what: str, seconds: float) -> float:
    """Waits for a condition, at most `seconds`. Returns the seconds it took."""
    started = time.monotonic()
    while not is_true():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.02)
    return time.monotonic() - started
