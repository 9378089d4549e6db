"""The mirror as a process: its lock, its signals, its silence."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corvo.runtime.process import write_settings
from corvo.runtime.settings import Settings
from tests.support.builders import enqueue
from tests.support.read_dbs import FilePlace

from .fake_shard import FakeShard
from .mirrors import eventually, is_equal

ROOT = Path(__file__).parents[3]


@pytest.fixture
def node(tmp_path):
    """A data directory with one shard, as `corvo server` leaves it."""
    (tmp_path / "run").mkdir()
    write_settings(Settings(data_dir=str(tmp_path), shards=1))
    shard = FakeShard(f"ipc://{tmp_path}/run/shard-0.ipc")
    shard.start()
    yield tmp_path, shard
    shard.stop()


def start(directory):
    return subprocess.Popen(
        [sys.executable, "-m", "gateway.mirror", "--run-dir", "run"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.system
def test_the_process_follows_keeps_others_out_and_stops_cleanly_on_sigterm(node):
    directory, shard = node
    mirror = start(directory)
    try:
        eventually(lambda: is_equal(FilePlace(directory), [shard]))
        shard.apply(enqueue(1))
        eventually(lambda: is_equal(FilePlace(directory), [shard]))
        second = start(directory)
        said, _ = second.communicate(timeout=10)
        assert (second.returncode, b"another mirror runs" in said) == (1, True)

        since = time.monotonic()
        mirror.send_signal(signal.SIGTERM)
        assert mirror.wait(5) == 0
        assert time.monotonic() - since < 1
    finally:
        mirror.kill()
        mirror.wait()
        if mirror.stdout is not None:
            mirror.stdout.close()

    assert FilePlace(directory).read("SELECT is_clean FROM mirror_meta") == [(1,)]


@pytest.mark.system
def test_an_idle_process_uses_almost_no_time(node):
    directory, shard = node
    mirror = start(directory)
    try:
        eventually(lambda: is_equal(FilePlace(directory), [shard]))
        moment = "SELECT caught_up_at FROM mirror_cursors"
        used = cpu_ticks(mirror.pid)
        first = FilePlace(directory).read(moment)

        eventually(lambda: FilePlace(directory).read(moment) > first)

        assert cpu_ticks(mirror.pid) - used <= 5  # hundredths of a second, in about one second
    finally:
        mirror.kill()
        mirror.wait()
        if mirror.stdout is not None:
            mirror.stdout.close()


def cpu_ticks(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
