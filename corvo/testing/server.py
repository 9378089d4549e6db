"""A real server for tests: one node in a temporary directory, whose clock can be moved forward."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import httpx

from corvo.client.answers import JobSummary
from corvo.client.bodies import DeleteQueueQuery, QueuesQuery, SearchBody
from corvo.client.http import Client
from corvo.client.refusals import QueueNotFound
from corvo.runtime.addresses import split_address
from corvo.runtime.movable_clock import MovedClock
from corvo.runtime.process import RUN, read_settings

START_S, STOP_S, SETTLE_S = 40.0, 40.0, 10.0
POLL_S = 0.01
FLAGS = ("--bind", "127.0.0.1:0", "--shards", "2", "--fsync", "off", "--auth", "off", "--test-clock")
PAGE = 1000

T = TypeVar("T")


class TestServerFailed(RuntimeError):
    """The server did not start, or did not become quiet. Says where its log is."""


class ServerClock:
    """The server's time of day. It moves forward only, and stays ahead for the tests that follow."""

    def __init__(self, data_dir: Path, client: Client) -> None:
        self._moved = MovedClock(data_dir)
        self._client = client

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._moved() / 1e9, UTC)

    def advance(self, span: timedelta | None = None, **units: float) -> datetime:
        """Moves it by a span: `advance(hours=2)`. Everything that falls due on the way happens: retries and delayed
        jobs are pending when this returns, leases have expired, and a schedule has fired for each of its slots."""
        target = self.now() + (span or timedelta()) + timedelta(**units)
        while (slot := self._next_slot()) is not None and slot <= target:
            self._move_to(slot)
            self._await_firing(slot)
        self._move_to(target)
        return self.now()

    def _await_firing(self, slot: datetime) -> None:
        def has_fired() -> bool:
            following = self._next_slot()
            return following is None or following > slot

        _await(has_fired, "schedules to fire")

    def _move_to(self, moment: datetime) -> None:
        """A shard looks at the clock in its turn, and a read gives each one a turn: the first makes what is due happen,
        the second is answered behind it."""
        self._moved.advance(max(0, round((moment - self.now()).total_seconds() * 1e9)))
        for _ in range(2):
            self._client.schedules()

    def _next_slot(self) -> datetime | None:
        found = [schedule.next_at for schedule in self._client.schedules() if not schedule.paused and schedule.next_at]
        return min(map(datetime.fromisoformat, found), default=None)


class CorvoTestServer:
    """What the fixture `corvo_server` gives."""

    __test__ = False  # no test class, whatever pytest thinks of its name

    def __init__(self, url: str, data_dir: Path) -> None:
        self.url = url
        self.data_dir = data_dir
        self.client = Client(url)
        self.clock = ServerClock(data_dir, self.client)

    def jobs(self, queue: str) -> list[JobSummary]:
        """All jobs of a queue, oldest first."""
        return self.client.search(SearchBody(queue=queue, order="asc", limit=PAGE, consistent=True)).jobs

    def reset(self) -> None:
        """Removes all schedules and queues with their jobs. Work that was begun must have ended."""
        for schedule in self.client.schedules():
            self.client.delete_schedule(schedule.id)
        _await(lambda: all(bulk.finished_at for bulk in self.client.bulks()), "bulk operations to end")
        for queue in self.client.queues(QueuesQuery(consistent=True)):
            try:
                self.client.delete_queue(queue.name, DeleteQueueQuery(confirm=True, force=True))
            except QueueNotFound:
                continue  # the list was a moment old

    def close(self) -> None:
        self.client.close()


@contextmanager
def running_server() -> Iterator[CorvoTestServer]:
    """Until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="corvo-test-", ignore_cleanup_errors=True) as folder:
        data_dir, log = Path(folder) / "data", Path(folder) / "server.log"
        command = [sys.executable, "-m", "corvo.cli.main", "server", "--data-dir", str(data_dir), *FLAGS]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            server = CorvoTestServer(_await_url(process, data_dir, log), data_dir)
            try:
                yield server
            finally:
                server.close()
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_url(process: "subprocess.Popen[bytes]", data_dir: Path, log: Path) -> str:
    def url() -> str:
        if process.poll() is not None:
            told = log.read_text(errors="replace")[-2000:]
            raise TestServerFailed(f"the server ended with {process.returncode}:\n{told}")
        try:
            host, port = split_address(read_settings(data_dir / RUN).bind)
        except (OSError, ValueError):
            return ""
        try:
            is_ready = httpx.get(f"http://{host}:{port}/readyz", timeout=5.0).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return ""
        return f"http://{host}:{port}" if is_ready else ""

    return _await(url, "the server to be ready", START_S)


def _await(condition: Callable[[], T], what: str, seconds: float = SETTLE_S) -> T:
    ends = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > ends:
            raise TestServerFailed(f"waited {seconds:g} s for {what}")
        time.sleep(POLL_S)
    return found
