"""A real server: `corvo server` as a child process, on a free port.

    with Node(folder / "node") as node:
        node.address            # ("127.0.0.1", port)
        node.readings()         # CPU and memory of each of its processes

The directory belongs to the caller and is kept, so that a killed node can be restarted on it.
"""

import http.client
import time
from pathlib import Path
from types import TracebackType

from benchmarks.processes import NotReady, Program, Reading, python
from corvo.runtime.addresses import split_address
from corvo.runtime.process import RUN, read_settings
from corvo.runtime.settings import Settings

START_S_MAX = 60.0
SETTLE_LOOK_S = 0.5
SETTLED_SHARE = 0.05  # of one core; a node below this is idle


class Node:
    """The constructor starts it. `start_s`: from the start of the process to the first 200 of /healthz. A node of a
    cluster is not awaited, because it is not healthy alone."""

    def __init__(self, folder: Path, *flags: str, is_awaited: bool = True) -> None:
        self.folder = folder
        (folder / RUN / "settings.json").unlink(missing_ok=True)  # from an earlier start, with another port
        command = python("-m", "corvo.cli.main", "server", "--data-dir", str(folder), "--bind", "127.0.0.1:0", *flags)
        self._started = time.monotonic()
        self.start_s = 0.0
        self.program = Program(command, folder.with_name(folder.name + ".log"))
        if is_awaited:
            self.await_healthy()

    def await_healthy(self) -> None:
        try:
            self.program.await_ready(self.is_healthy, START_S_MAX, "corvo server")
        except BaseException:
            self.program.kill()
            raise
        self.start_s = time.monotonic() - self._started

    def __enter__(self) -> "Node":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def settings(self) -> Settings:
        return read_settings(self.folder / RUN)

    @property
    def address(self) -> tuple[str, int]:
        return split_address(self.settings.bind)

    def readings(self) -> list[Reading]:
        return self.program.readings()

    def reading(self, name: str) -> Reading:
        for reading in self.readings():
            if reading.name == name:
                return reading
        raise NotReady(f"the node has no process {name}: {self.program.log_end()}")

    def cpu_s(self) -> float:
        return self.program.cpu_s()

    def await_settled(self, timeout_s: float) -> float:
        """Waits until its processes are idle: the mirror has caught up, LevelDB has compacted. Returns the seconds."""
        started = time.monotonic()
        while time.monotonic() < started + timeout_s:
            before = self.cpu_s()
            time.sleep(SETTLE_LOOK_S)
            if (self.cpu_s() - before) / SETTLE_LOOK_S < SETTLED_SHARE:
                break
        return time.monotonic() - started

    def stop(self) -> float:
        return self.program.stop()

    def kill(self) -> None:
        self.program.kill()

    def is_healthy(self) -> bool:
        try:
            host, port = self.address
            connection = http.client.HTTPConnection(host, port, timeout=2.0)
            try:
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError):  # no file yet, half a file, no listener yet
            return False
