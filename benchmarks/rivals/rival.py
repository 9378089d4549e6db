"""One rival under measurement: its server, its worker and its producer, each in its own process."""

import json
import os
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.load import LoadFailed
from benchmarks.processes import ROOT, Program
from benchmarks.rivals.programs.board import Board
from benchmarks.rivals.servers import Missing, Server

PROGRAMS = ROOT / "benchmarks" / "rivals" / "programs"
ARRIVE_S_MAX = 60.0
LOOK_S = 0.005


class Tools(msgspec.Struct, frozen=True):
    """Where the libraries of the rivals are installed; they are not dependencies of this project."""

    pythons: tuple[Path, ...]  # several, because some packages conflict
    node_modules: Path


class Rival(NamedTuple):
    name: str
    package: str
    module: str  # in `programs/`: Python, or Node.js if it ends in .mjs
    server: type[Server]
    setting: str
    worker: tuple[str, ...] = ()  # arguments of Python; a Node.js module starts its own

    @property
    def is_node(self) -> bool:
        return self.module.endswith(".mjs")

    def find(self, tools: Tools) -> tuple[Path, str]:
        """The Python that has the package, and its version. Raises `Missing`."""
        self.server.require()
        if self.is_node:
            return tools.pythons[0], self._node_version(tools)
        look = f"import importlib.metadata as m; print(m.version({self.package!r}))"
        for python in tools.pythons:
            if not python.exists():
                raise Missing(f"a Python at {python} (--rivals-python PATH)")
            done = subprocess.run([str(python), "-c", look], capture_output=True, text=True, timeout=30, check=False)
            if not done.returncode:
                return python, done.stdout.strip()
        raise Missing(f"the package {self.package} (--rivals-python PATH)")

    def _node_version(self, tools: Tools) -> str:
        if shutil.which("node") is None:
            raise Missing("the program node")
        about = tools.node_modules / self.package / "package.json"
        if not about.exists():
            raise Missing(f"the package {self.package} in {tools.node_modules} (--rivals-node-modules PATH)")
        return str(json.loads(about.read_text())["version"])

    def says(self, is_durable: bool) -> str:
        return f"{self.setting}; {self.server.says(is_durable)}"


class Ring:
    """A fresh server and board with their workers. A context manager: leaving it ends all of them."""

    def __init__(self, rival: Rival, python: Path, node_modules: Path, folder: Path, is_durable: bool) -> None:
        self._rival = rival
        self._python = str(python)
        self._node_modules = str(node_modules)
        self._folder = folder
        self._running = ExitStack()
        folder.mkdir(parents=True)
        self._board_path = folder / "board"
        self.board = Board(str(self._board_path))
        self._server = rival.server(folder / "server", is_durable)
        self._running.callback(self._server.stop)

    def __enter__(self) -> "Ring":
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    @property
    def url(self) -> str:
        """Of the server."""
        return self._server.url

    def work(self) -> Program:
        """Starts a worker, which runs until the end or until it is killed."""
        worker = Program(self._command("work"), self._folder / "worker.log", self._folder, environ=self._environ())
        self._running.callback(worker.kill)
        return worker

    def produce(self, first: int, timeout_s: float, **options: float) -> int:
        """Sends jobs, numbered from `first`. Returns how many were sent."""
        words = [word for name, value in {"first": first, **options}.items() for word in (f"--{name}", f"{value:g}")]
        done = subprocess.run(
            [*self._command("produce"), *words],
            cwd=self._folder,
            env=self._environ(),
            capture_output=True,
            text=True,
            timeout=timeout_s + ARRIVE_S_MAX,
            check=False,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["it said nothing"]
            raise LoadFailed(next((line for line in lines if "Error" in line), lines[-1]))
        return int(json.loads(done.stdout.splitlines()[-1])["sent"])

    def await_arrival(self, first: int, count: int, worker: Program) -> None:
        """Waits until all jobs from `first` on have arrived. If they do not, the worker's log says why."""
        deadline = time.monotonic() + ARRIVE_S_MAX
        for number in range(first, first + count):
            while not self.board.arrived_at(number):
                if time.monotonic() > deadline:
                    raise LoadFailed(f"{self._rival.name}: job {number} did not arrive: {worker.log_end()}")
                time.sleep(LOOK_S)

    def _command(self, part: str) -> list[str]:
        if self._rival.is_node:
            return ["node", str(PROGRAMS / self._rival.module), part]
        if part == "produce":
            return [self._python, str(PROGRAMS / "produce.py"), self._rival.module]
        known = {"{url}": self._server.url, "{programs}": str(PROGRAMS)}
        words = []
        for word in self._rival.worker:
            for name, value in known.items():
                word = word.replace(name, value)
            words.append(word)
        return [self._python, *words]

    def _environ(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PYTHONPATH": str(PROGRAMS),
            "RIVALS_URL": self._server.url,
            "RIVALS_BOARD": str(self._board_path),
            "RIVALS_NODE_MODULES": self._node_modules,
        }
