"""docs/reference/seeds.md tells the truth: every row that can be run is run, against one real server.

A row that works or differs must do what it says. A row that says "not yet" must still fail: the day it succeeds, this
test fails and asks for the row to be changed.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chaos.node import Node, wait_until
from docs.seeds import SEEDS
from docs.seeds.rows import Row, Shell
from tests.docs.seed_runner import Terminal, Unlike

pytestmark = pytest.mark.system

ROWS = [row for seed in SEEDS for section in seed.sections for row in section.rows]


@pytest.fixture(scope="module")
def server() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="corvo-seeds-") as path:
        node = Node.start(Path(path) / "data", "--shards", "3", "--fsync", "off")
        wait_until(lambda: httpx.get(f"{node.url}/readyz").status_code == 200, "the server to be ready", 30.0)
        yield node
        node.stop()


@pytest.fixture(scope="module")
def terminal(server: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    terminal = Terminal(server.url, server.data_dir, tmp_path_factory.mktemp("terminal"))
    yield terminal
    terminal.close()


@pytest.mark.parametrize("row", [row for row in ROWS if row.run], ids=lambda row: row.id)
def test_the_row_tells_the_truth(row: Row, terminal: Terminal) -> None:
    if shutil.which("jq") is None and any(
        isinstance(step, Shell) and re.search(r"\bjq ", step.line) for step in row.run
    ):
        pytest.skip("this line needs jq")
    terminal.prepare(row)
    if row.status != "not yet":
        terminal.run(row)
        return
    with pytest.raises(Unlike):
        terminal.run(row)
        pytest.fail(f"{row.id} works now: give it the status `works` in docs/seeds, then run python -m docs.generate")


def needs_jq(row: Row) -> bool:
    return any(isinstance(step, Shell) and re.search(r"\bjq ", step.line) for step in row.run)


def test_every_row_has_a_name_of_its_own() -> None:
    names = [row.id for row in ROWS]

    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_that_is_missing_names_its_area(row: Row) -> None:
    assert bool(row.area) == (row.status == "not yet" and not row.building)
    assert row.where.endswith(".")
