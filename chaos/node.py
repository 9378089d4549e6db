"""A node of real processes: started in a directory of its own, or found by its data directory."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec

from corvo.node import RUN, read_settings
from corvo.settings import Settings, split_address

_ROLES = {"gateway.mirror": "mirror", "gateway": "gateway", "shards": "shard"}


class Process(msgspec.Struct, frozen=True):
    role: str  # "gateway", "mirror", "shard-0", …
    pid: int


class Node:
    """A server whose processes can be listed and killed. `stop` ends one that was started here by its own handle."""

    def __init__(self, data_dir: Path, supervisor_pid: int, handle: "subprocess.Popen[bytes] | None" = None) -> None:
        self.data_dir = data_dir
        self.supervisor_pid = supervisor_pid
        self._handle = handle

    @classmethod
    def start(cls, data_dir: Path, *flags: str, log: Path | None = None) -> "Node":
        """`corvo server` on a port that the OS picks, ready when this returns."""
        data_dir.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "corvo.cli.main", "server", "--data-dir", str(data_dir)]
        if "--bind" not in flags:
            command += ["--bind", "127.0.0.1:0"]
        output = (log or data_dir / "server.log").open("ab")
        root = Path(__file__).resolve().parents[1]
        with output:
            handle = subprocess.Popen([*command, *flags], stdout=output, stderr=subprocess.STDOUT, cwd=root)
        node = cls(data_dir, handle.pid, handle)
        wait_until(lambda: node._has_settings_of(handle) and node.is_healthy(), "the server to be healthy", 20.0)
        return node

    @classmethod
    def attach(cls, data_dir: Path) -> "Node":
        """A server that runs already."""
        return cls(data_dir, int((data_dir / "lock").read_text()))

    def _has_settings_of(self, handle: "subprocess.Popen[bytes]") -> bool:
        if handle.poll() is not None:
            raise RuntimeError(f"the server ended with {handle.returncode}; see {self.data_dir}/server.log")
        # The file of an earlier run names an earlier port: wait for the one that this run writes.
        path = self.data_dir / RUN / "settings.json"
        return path.exists() and (self.data_dir / "lock").read_text() == str(handle.pid) and bool(self.processes())

    @property
    def settings(self) -> Settings:
        return read_settings(self.data_dir / RUN)

    @property
    def url(self) -> str:
        host, port = split_address(self.settings.bind)
        return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"

    def is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2.0).status_code == 200
        except httpx.HTTPError:
            return False

    def processes(self) -> list[Process]:
        """The supervisor's children, by what they do."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                arguments = (entry / "cmdline").read_bytes().decode().split("\0")
            except (OSError, ValueError, IndexError):
                continue  # it ended while we looked
            if parent == self.supervisor_pid and "-m" in arguments:
                role = _ROLES.get(arguments[arguments.index("-m") + 1])
                if role is not None:
                    number = f"-{arguments[arguments.index('--shard') + 1]}" if role == "shard" else ""
                    found.append(Process(role + number, int(entry.name)))
        return sorted(found, key=lambda process: process.role)

    def pid_of(self, role: str) -> int | None:
        return next((process.pid for process in self.processes() if process.role == role), None)

    def kill(self, role: str, signum: int = signal.SIGKILL) -> int:
        """Kill a process and return its pid. Waits for it to exist: it may be on its way back from the last kill."""
        wait_until(lambda: self.pid_of(role) is not None, f"{role} to be running", 10.0)
        pid = self.pid_of(role)
        assert pid is not None
        os.kill(pid, signum)
        return pid

    def stop(self) -> int:
        """Exit code of an ordered stop."""
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
    """Wait for a condition, at most so long; how long it took."""
    started = time.monotonic()
    while not is_true():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.02)
    return time.monotonic() - started
