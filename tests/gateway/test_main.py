"""`python -m gateway` as a process: it starts without its shards, says so, and stops when it is told to."""

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from corvo.runtime.process import RUN, write_settings
from corvo.runtime.settings import Settings
from gateway.http.servers import hypercorn
from tests.gateway.fake_peer import short_dir

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


class Process:
    def __init__(self, data_dir: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.run_dir = Path(data_dir, RUN)
        self.run_dir.mkdir()
        write_settings(Settings(data_dir=data_dir, bind=f"127.0.0.1:{self.port}", shards=2, shutdown_timeout=2))
        self.child = self.start()

    def start(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "gateway", "--run-dir", str(self.run_dir)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def status(self, path: str, timeout_s: float = 5) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout_s) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def wait(self) -> None:
        end = monotonic() + 15
        while monotonic() < end and self.child.poll() is None:
            try:
                self.status("/livez")
                return
            except OSError:
                sleep(0.02)
        raise AssertionError("the gateway does not serve")


@pytest.fixture
def process() -> Iterator[Process]:
    with short_dir() as data_dir:
        made = Process(data_dir)
        try:
            made.wait()
            yield made
        finally:
            if made.child.poll() is None:
                made.child.kill()
            made.child.communicate()


def test_it_lives_without_its_shards_and_stops_in_time(process: Process) -> None:
    another = process.start()
    told, _ = another.communicate(timeout=15)
    statuses = [process.status(path) for path in ("/livez", "/healthz", "/docs")]
    started = monotonic()
    process.child.send_signal(signal.SIGTERM)
    lines, _ = process.child.communicate(timeout=10)

    assert statuses == [200, 503, 503], "whether it is open cannot be known"
    assert (another.returncode, "another process serves HTTP here" in told) == (1, True)
    assert process.child.returncode == 0
    assert monotonic() - started < 5
    assert "stopped" in lines
    assert "Traceback" not in lines


def test_the_server_is_set_up_to_say_nothing_of_itself_and_to_keep_workers() -> None:
    config = hypercorn.config(7.0)

    assert (config.include_server_header, config.accesslog, config.errorlog) == (False, None, None)
    assert config.graceful_timeout == 7
    assert config.keep_alive_max_requests > 10**6
