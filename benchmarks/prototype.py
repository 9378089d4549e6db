"""The prototype, which is not part of this project: its own modules, imported from its path.

`serve` starts its shard, mirror and gateway as its `measure.py` does, on an inherited socket. `stream` drives them with
`measure.py`'s own WebSocket client and prints its line of JSON. Both run in separate processes, because the prototype's
modules have names (`gateway`, `wire`) that mean something else here.
"""

import argparse
import asyncio
import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.load import Address
from benchmarks.processes import ROOT, Program, enqueues, listening_socket, python

READY_S_MAX = 30.0
MODULES = ("gateway.py", "measure.py", "mirror.py", "shard.py", "wire.py")
CONNECTIONS, JOBS_A_FRAME, FRAMES_AHEAD = 8, 50, 2  # its fastest shape


def find(path: Path) -> Path | None:
    """The path, if it has every file that is needed."""
    return path.resolve() if all((path / module).is_file() for module in MODULES) else None


class Prototype:
    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        home = folder / "prototype"
        home.mkdir()
        with listening_socket() as event_wait:
            self.address: Address = ("127.0.0.1", event_wait.getsockname()[1])
            fd = event_wait.fileno()
            command = python("-m", "benchmarks.prototype", "serve", str(path), "--folder", str(home), "--fd", str(fd))
            self.program = Program(command, folder / "prototype.log", pass_fds=(fd,))
        try:
            self.program.await_ready(lambda: enqueues(self.address), READY_S_MAX, "the prototype")
        except BaseException:
            self.program.kill()
            raise

    def stream_ops_per_s(self, seconds: float) -> float:
        """Enqueues, claims and acks a second through its WebSocket stream, fsync on."""
        port = str(self.address[1])
        done = subprocess.run(
            python("-m", "benchmarks.prototype", "stream", str(self._path), "--port", port, "--seconds", str(seconds)),
            stdout=subprocess.PIPE,
            cwd=ROOT,
            timeout=seconds + READY_S_MAX,
            check=True,
        )
        return float(json.loads(done.stdout)["ops_per_s"])

    def stop(self) -> None:
        self.program.stop()


def serve(path: Path, folder: Path, fd: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.path.insert(0, str(path))
    shard, mirror = importlib.import_module("shard"), importlib.import_module("mirror")
    ops, feed = f"ipc://{folder}/shard", f"ipc://{folder}/feed"
    forks = multiprocessing.get_context("fork")
    children = [
        forks.Process(target=shard.run, args=(ops, str(folder / "db"), True, feed), daemon=True),
        forks.Process(target=mirror.run, args=(feed, str(folder / "read.db")), daemon=True),
    ]
    for child in children:
        child.start()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PROTOTYPE_SHARD": ops}
    gateway = subprocess.Popen(
        python("-m", "hypercorn", "-k", "uvloop", "-b", f"fd://{fd}", "gateway:app"),
        cwd=path,
        env=environ,
        pass_fds=(fd,),
    )
    try:
        gateway.wait()
    finally:
        gateway.terminate()
        gateway.wait()
        for child in children:
            child.terminate()
            child.join()


def stream(path: Path, port: int, seconds: float) -> None:
    sys.path.insert(0, str(path))
    measure: Any = importlib.import_module("measure")
    measure.PORT = port
    print(json.dumps(asyncio.run(measure.through_gateway(CONNECTIONS, JOBS_A_FRAME, FRAMES_AHEAD, seconds))))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prototype", description=__doc__)
    parser.add_argument("part", choices=("serve", "stream"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--fd", type=int)
    parser.add_argument("--port", type=int)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    if options.part == "serve":
        serve(options.path, options.folder, options.fd)
    else:
        stream(options.path, options.port, options.seconds)


if __name__ == "__main__":
    main()
