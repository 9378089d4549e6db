"""`corvo local`, started for real: with nodes that are scripts, or with real ones."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.nodes import PATIENCE_S, ROOT, await_

READY_S = 60.0  # for real nodes on a busy machine

# Answers /readyz, notes in a journal when it is up and when it is asked to stop. The file `broken` names who cannot
# start, `unready` who is not ready.
_NODE = """
import http.server, os, pathlib, signal, sys
here, name, port = pathlib.Path(__file__).parent, sys.argv[1], int(sys.argv[2])
def write(word):
    with open(here / "journal", "a") as file:
        file.write(f"{word} {name}\\n")
def named(file):
    return (here / file).exists() and name in (here / file).read_text()
def stop(*_):
    write("stopped")
    os._exit(0)
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if named("unready") else 200)
        self.end_headers()
        self.wfile.write(b'{"error": "shard 0: no leader", "code": "UNHEALTHY"}')
if named("broken"):
    print("corvo: cannot use this directory", file=sys.stderr)
    sys.exit(2)
signal.signal(signal.SIGTERM, stop)
server = http.server.HTTPServer(("127.0.0.1", port), Ready)
write("up")
server.serve_forever()
"""


class Local:
    def __init__(self, handle: "subprocess.Popen[str]", folder: Path) -> None:
        self.handle = handle
        self.folder = folder

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    @property
    def errors(self) -> str:
        return (self.folder / "errors").read_text()

    def event_log(self) -> list[str]:
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def await_(self, condition: Any, patience_s: float = PATIENCE_S) -> Any:
        return await_(condition, lambda: f"{self.handle.poll()=} {self.output} {self.errors}", patience_s)

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.output)
        return report

    def end(self, number: int = signal.SIGTERM) -> int:
        self.handle.send_signal(number)
        return self.handle.wait(READY_S)


@contextmanager
def started(folder: Path, command: list[str], cwd: Path | None = None) -> Iterator[Local]:
    with (folder / "output").open("w") as output, (folder / "errors").open("w") as errors:
        handle = subprocess.Popen(
            command, stdout=output, stderr=errors, text=True, cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
    try:
        yield Local(handle, folder)
    finally:
        if handle.poll() is None:
            handle.terminate()
            handle.wait(READY_S)


@contextmanager
def dummies(folder: Path, output: str = "table", nodes: int = 3) -> Iterator[Local]:
    (folder / "node.py").write_text(_NODE)
    wishes = json.dumps({"data_dir": str(folder / "data"), "nodes": nodes, "shards": 1})
    program = str(Path(__file__).with_name("dummy_local.py"))
    with started(folder, [sys.executable, program, wishes, str(folder / "node.py"), output]) as local:
        yield local


@contextmanager
def real(folder: Path, *options: str) -> Iterator[Local]:
    command = [sys.executable, "-m", "corvo.cli.main", "local", "--data-dir", str(folder / "data"), "--fsync", "off"]
    with started(folder, [*command, "--output", "json", *options]) as local:
        yield local
