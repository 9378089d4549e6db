"""Nodes of dummy processes, started for real and ended by their own handle. Waiting is for conditions, never a span."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import corvo
from corvo.cli.supervise.programs import NUMBER, Program

PATIENCE_S = 20.0
ROOT = Path(corvo.__file__).parents[1]

# Says that it is up, stops when asked and says so; both in one file, so that the order of all processes shows.
_DUMMY = """
import os, signal, sys, time
journal, name, stop_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
def write(word):
    with open(journal, "a") as file:
        file.write(f"{word} {name} {os.getpid()}\\n")
def stop(*_):
    write("stopping")
    time.sleep(stop_s)  # the drain of a process
    write("stopped")
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
print(f"{name} speaks", flush=True)
write("up")
while True:
    signal.pause()
"""


class Node:
    def __init__(self, handle: "subprocess.Popen[str]", folder: Path) -> None:
        self.handle = handle
        self.folder = folder

    def event_log(self) -> list[tuple[str, str, int]]:
        path = self.folder / "journal"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(word, name, int(pid)) for word, name, pid in (line.split() for line in lines)]

    def said(self, word: str, name: str) -> list[int]:
        """Pids that said so, in order."""
        return [pid for said, who, pid in self.event_log() if (said, who) == (word, name)]

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output().splitlines() if line.startswith("{")]

    def await_(self, condition: Callable[[], Any]) -> Any:
        return await_(condition, lambda: f"{self.handle.poll()=} {self.output()}")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.handle.send_signal(number)
        return self.handle.wait(PATIENCE_S)


def await_(condition: Callable[[], Any], explain: Callable[[], str] = str, patience_s: float = PATIENCE_S) -> Any:
    deadline = time.monotonic() + patience_s
    while not (result := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {explain()}"
        time.sleep(0.01)
    return result


def dummies(folder: Path, shards: int = 2, stop_s: float = 0.0) -> list[Program]:
    script = folder / "dummy.py"
    script.write_text(_DUMMY)

    def dummy(name: str, priority: int, process: str = "", count: int = 1) -> Program:
        command = (sys.executable, str(script), str(folder / "journal"), process or name, str(stop_s))
        return Program(name=name, command=command, priority=priority, count=count, process=process)

    shard = dummy("shards", 20, f"shard-{NUMBER}", shards)
    return [dummy("mirror", 10), shard, dummy("gateway", 30)]


def meeting(folder: Path, script: str) -> list[str]:
    """The command of a meeting that does what the script says."""
    path = folder / "meeting.py"
    path.write_text(script)
    return [sys.executable, str(path)]


def command(folder: Path, programs: list[Program], meeting: list[str] | None = None, **settings: Any) -> list[str]:
    chosen = {"data_dir": str(folder / "data"), "bind": "127.0.0.1:0", "shutdown_timeout": 5, **settings}
    parts = [{name: getattr(part, name) for name in part.__struct_fields__} for part in programs]
    given = [json.dumps(one) for one in (chosen, parts, meeting or ["/no/such/meeting"])]
    return [sys.executable, str(Path(__file__).with_name("dummy_node.py")), *given]


@contextmanager
def running(folder: Path, programs: list[Program], meeting: list[str] | None = None, **settings: Any) -> Iterator[Node]:
    with (folder / "output").open("a") as output:
        handle = subprocess.Popen(
            command(folder, programs, meeting, **settings),
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},  # as in a container
        )
    try:
        yield Node(handle, folder)
    finally:
        if handle.poll() is None:
            handle.terminate()
            handle.wait(PATIENCE_S)


def tried(
    folder: Path, programs: list[Program], meeting: list[str] | None = None, **settings: Any
) -> "subprocess.CompletedProcess[str]":
    """A node that is expected to end by itself."""
    return subprocess.run(
        command(folder, programs, meeting, **settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
