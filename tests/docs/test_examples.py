"""Every command and program in the READMEs, the tutorial and the guides runs, and prints what the page says.

One server for all pages; each page runs in a folder of its own, its blocks in order. A python block that begins with
`# name.py` is a file that later blocks use. A text or json block after a block that runs is its output. A page may
start a cluster of its own at the ports 18081 to 18083, which stand for free ones.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chaos.node import Node, wait_until
from chaos.ports import free_ports
from tests.docs.matching import Bindings, match_json, match_text, rewritten
from tests.docs.pages import ROOT, Block, blocks, name_of
from tests.tidy.tracked import ignored_names, is_ignored

pytestmark = pytest.mark.system

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("tutorial/*.md")),
    *sorted((ROOT / "docs").glob("how-to/*.md")),
    *sorted((ROOT / "sdk").glob("*/README.md")),
]
LANGUAGES = {"bash", "python", "text", "json", "toml", "yaml", "promql", "javascript", "typescript", "go"}
ORDERS = {"", "not run", "in the background"}
BLOCK_S = 60.0  # a whole cluster starts in one
CLUSTER_PORTS = (18081, 18082, 18083)


@pytest.fixture(scope="module")
def server() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="corvo-docs-") as path:
        node = Node.start(Path(path) / "data")
        yield node
        node.stop()


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_page_does_what_it_says(path: Path, server: Node, tmp_path: Path) -> None:
    wait_until(lambda: is_ready(server), "the server to be ready", BLOCK_S)  # the page before may have hurt it
    page = Page(server, tmp_path)
    try:
        page.run(blocks(path.read_text()))
    finally:
        page.close()
    assert [name for name in page.folders() if not is_ignored(name, ignored_names())] == [], "add them to .gitignore"


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_has_a_language_and_a_known_order(path: Path) -> None:
    for block in blocks(path.read_text()):
        assert block.language in LANGUAGES, f"{path.name}:{block.line} has the language {block.language!r}"
        assert block.order in ORDERS, f"{path.name}:{block.line} has the order {block.order!r}"


def is_ready(server: Node) -> bool:
    try:
        return httpx.get(f"{server.url}/readyz", timeout=5.0).status_code == 200
    except httpx.HTTPError:
        return False


class Page:
    """A reader at a terminal: types each block, compares what is printed, remembers the ids."""

    def __init__(self, server: Node, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._ids: Bindings = {}
        self._first_port = free_ports(len(CLUSTER_PORTS), 1)[0]
        self._background: list[tuple[subprocess.Popen[bytes], Path]] = []
        programs = folder / ".bin"
        programs.mkdir()
        for name, command in (("python3", ""), ("python", ""), ("corvo", " -m corvo.cli.main")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{command} "$@"\n')
            program.chmod(0o755)
        (folder / "data").symlink_to(server.data_dir)
        self._environ = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'sdk' / 'python'}",  # as if both were installed
            "PYTHONUNBUFFERED": "1",
            "CORVO_SERVER": server.url,
            "NO_COLOR": "1",
        }

    def run(self, page: list[Block]) -> None:
        for number, block in enumerate(page):
            if block.language not in ("bash", "python") or block.order == "not run":
                continue
            following = page[number + 1] if number + 1 < len(page) else None
            expected = following if following is not None and following.language in ("text", "json") else None
            self._run_block(block, expected)

    def _run_block(self, block: Block, expected: Block | None) -> None:
        text = self._rewritten(block.text)
        if block.language == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            path = self._folder / (name[1] if name else "block.py")
            path.write_text(text)
            if name is None:
                self._finish(block, [sys.executable, str(path)], expected)
        elif block.order == "in the background":
            self._start(block, text, expected)
        else:
            self._finish(block, ["bash", "-euo", "pipefail", "-c", text], expected)

    def _finish(self, block: Block, command: list[str], expected: Block | None) -> None:
        done = subprocess.run(
            command, cwd=self._folder, env=self._environ, capture_output=True, text=True, timeout=BLOCK_S, check=False
        )
        assert done.returncode == 0, f"line {block.line} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        if expected is not None:
            learnt = self._matched(expected, done.stdout)
            assert learnt is not None, f"line {expected.line} says\n{expected.text}\nthe command\n{done.stdout}"
            self._ids = learnt

    def _start(self, block: Block, text: str, expected: Block | None) -> None:
        output = self._folder / f"output-{block.line}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", text],
                cwd=self._folder,
                env=self._environ,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._background.append((process, output))
        if expected is not None:
            wait_until(
                lambda: self._matched(expected, output.read_text()) is not None,
                f"the output that line {expected.line} promises",
                BLOCK_S,
            )

    def _matched(self, expected: Block, actual: str) -> Bindings | None:
        match = match_json if expected.language == "json" else match_text
        return match(expected.text, actual, self._ids)

    def _rewritten(self, text: str) -> str:
        text = text.replace("http://localhost:8080", self._server.url)
        text = text.replace("localhost:8080", self._server.url.removeprefix("http://"))
        for number, port in enumerate(CLUSTER_PORTS):
            text = text.replace(str(port), str(self._first_port + number))
        return rewritten(text, self._ids)

    def folders(self) -> list[str]:
        """What the page left where the reader stood, in this project perhaps."""
        return [path.name for path in self._folder.iterdir() if path.is_dir() and path.name != ".bin"]

    def close(self) -> None:
        """A worker that waits for a job ends after its poll; nobody waits for that here."""
        for process, _ in self._background:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.wait(1.0)
                except ProcessLookupError:
                    break
                except subprocess.TimeoutExpired:
                    continue
