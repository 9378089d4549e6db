"""`docs/explanation/a-request.md` against a recorded request: the functions in its table run, in its order.

A node of one shard runs with a profiler in every process (`tests/docs/tracer`), while one enqueue and one search are
made. Each function of the table must be found in its process, after the functions above it that have the same words in
the column `process`, and after those of the shard. What has other words there may run at the same time.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from chaos.node import Node, wait_until
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "a-request.md"
MODULES = {"gateway": "gateway", "shard": "shards", "mirror": "gateway.mirror"}  # process on the page → `python -m`
WAIT_S = 30.0

_ROW = re.compile(r"\| (\d+) \| (\w[\w ,]*) \| (.+?) \|")
_STEP = re.compile(r"`([\w/]+\.py)` `([\w.]+)`")
_FILE = re.compile(r"`([\w/]+\.py)`")


class Step(NamedTuple):
    row: int
    lane: str  # the words in the column `process`; the first of them is the process
    path: str
    function: str

    @property
    def process(self) -> str:
        return re.split(r"\W", self.lane)[0]


class Called(NamedTuple):
    at_ns: int
    process: str
    path: str
    function: str


def steps_of(page: str) -> list[Step]:
    found = []
    for line in page.splitlines():
        if row := _ROW.match(line):
            named = _STEP.findall(row[3])
            assert named and len(named) == len(_FILE.findall(row[3])), f"row {row[1]}: name a function after each file"
            found += [Step(int(row[1]), row[2], path, function) for path, function in named]
    return found


def differences(steps: Iterable[Step], calls: list[Called]) -> Iterator[str]:
    reached: dict[str, int] = {}  # lane → where its last step was found
    for step in steps:
        start = max(reached.get(step.lane, -1), reached.get("shard", -1)) + 1
        wanted = (step.process, step.path, step.function)
        places = [at for at, call in enumerate(calls) if call[1:] == wanted]
        later = [at for at in places if at >= start]
        if later:
            reached[step.lane] = later[0]
        elif places:
            yield f"row {step.row}: {step.path} {step.function} ran before the steps above it"
        else:
            yield f"row {step.row}: {step.path} {step.function} did not run in the {step.process}"


@pytest.fixture(scope="module")
def calls() -> Iterator[list[Called]]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as path, pytest.MonkeyPatch.context() as patch:
        trace = Path(path) / "trace"
        trace.mkdir()
        switch = trace / "on"
        switch.write_bytes(b"\0")
        patch.setenv("PYTHONPATH", str(ROOT / "tests" / "docs" / "tracer"))
        patch.setenv("CORVO_TRACE_FOLDER", str(trace))
        node = Node.start(Path(path) / "data", "--shards", "1")
        try:
            record(node, switch)
        finally:
            node.stop()
        yield recorded(trace)


def record(node: Node, switch: Path) -> None:
    def is_mirrored() -> bool:
        return httpx.get(f"{node.url}/readyz").status_code == 200

    wait_until(is_mirrored, "the node to be ready", WAIT_S)
    with httpx.Client(base_url=f"{node.url}/api/v1", timeout=WAIT_S) as client, switch.open("r+b", 0) as is_on:
        search = {"queue": "mail", "consistent": True}
        client.post("/jobs/search", json=search)  # the mirror has seen all there is, and waits
        is_on.write(b"\1")
        made = client.post("/enqueue", json={"queue": "mail", "payload": {}})
        found = client.post("/jobs/search", json=search)
        is_on.seek(0)
        is_on.write(b"\0")
    assert (made.status_code, [job["id"] for job in found.json()["jobs"]]) == (201, [made.json()["job_id"]])


def recorded(trace: Path) -> list[Called]:
    names = {module: process for process, module in MODULES.items()}
    found = []
    for path in trace.glob("*.trace"):
        for line in path.read_text().splitlines():
            at_ns, module, file, function = line.split(" ", 3)
            if module in names:
                found.append(Called(int(at_ns), names[module], file, function))
    return sorted(found)


@pytest.mark.system
def test_the_page_tells_what_a_real_request_does(calls: list[Called]) -> None:
    assert list(differences(steps_of(PAGE.read_text()), calls)) == [], f"correct {PAGE.name}"


def test_every_file_of_the_page_is_there() -> None:
    assert [path for path in _FILE.findall(PAGE.read_text()) if not (ROOT / path).is_file()] == []


def test_the_page_goes_through_all_processes() -> None:
    steps = steps_of(PAGE.read_text())
    assert {step.process for step in steps} == set(MODULES)
    rows = list(dict.fromkeys(step.row for step in steps))
    assert rows == list(range(1, len(rows) + 1)), "number the rows"


ROWS = """
| 1 | gateway | `gateway/app.py` `Gateway.attend` | … |
| 2 | shard | `shards/replica.py` `Replica.turn`, `corvo/engine.py` `apply_entry` | … |
| 3 | mirror, later | `gateway/mirror/rows.py` `to_rows` | … |
| 4 | gateway | `gateway/app.py` `Gateway.attend` | … |
"""
REAL = [
    Called(1, "gateway", "gateway/app.py", "Gateway.attend"),
    Called(2, "shard", "shards/replica.py", "Replica.turn"),
    Called(3, "shard", "corvo/engine.py", "apply_entry"),
    Called(4, "gateway", "gateway/app.py", "Gateway.attend"),
    Called(5, "mirror", "gateway/mirror/rows.py", "to_rows"),
]


def test_a_page_that_is_true_has_no_differences() -> None:
    assert list(differences(steps_of(ROWS), REAL)) == []


TWO = ["`shards/replica.py` `Replica.turn`", "`corvo/engine.py` `apply_entry`"]


@pytest.mark.parametrize(
    "wrong",
    [
        ROWS.replace("corvo/engine.py", "corvo/motor.py"),
        ROWS.replace("apply_entry", "apply_all"),
        ROWS.replace("| mirror, later |", "| shard, later |"),
        ROWS.replace(", ".join(TWO), ", ".join(reversed(TWO))),
    ],
    ids=["renamed file", "renamed function", "other process", "other order"],
)
def test_a_page_that_is_wrong_is_caught(wrong: str) -> None:
    assert list(differences(steps_of(wrong), REAL))


def test_a_row_without_a_function_is_caught() -> None:
    with pytest.raises(AssertionError, match="row 1"):
        steps_of(ROWS.replace("`gateway/app.py` `Gateway.attend` | … |\n| 2", "`gateway/app.py` | … |\n| 2"))
