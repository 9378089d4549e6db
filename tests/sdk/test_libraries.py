"""The libraries whose toolchain is here, against a real server: they build, conform, and their examples work."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.node import Node
from sdk.conformance.faults import FaultProxy
from sdk.conformance.harness import Harness
from sdk.conformance.languages import LANGUAGES, SDK, Language
from sdk.conformance.play import Play
from sdk.conformance.run import ROOT, build, routes
from sdk.conformance.scenario import scenarios
from tests.docs.pages import blocks

pytestmark = pytest.mark.system

BUILD_S, EXAMPLE_S = 300.0, 60.0
# `make sdks` plays all of them.
PLAYED = (
    "whole-life",
    "errors",
    "overload",
    "lost-answer-of-enqueue",
    "events",
    "worker-results-stream",
    "worker-progress-http",
)
EXAMPLES = {
    "typescript": ("examples/letters.ts", ("node", "build/examples/letters.js")),
    "go": ("examples/letters/main.go", ("go", "run", "./examples/letters")),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node.start(tmp_path_factory.mktemp("sdk") / "data")
    try:
        yield node
    finally:
        node.stop()


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_a_library_keeps_the_contract(language: Language, node: Node, tmp_path: Path) -> None:
    if language.missing:
        pytest.skip(f"{' and '.join(language.missing)} not found")
    build(language)
    cwd = language.folder if language.build else ROOT
    with FaultProxy(int(node.url.rpartition(":")[2])) as proxy:
        for name in PLAYED:
            scenario = scenarios()[name]
            if not language.has(scenario):
                continue
            environ = {**os.environ, "PYTHONPATH": str(ROOT)}
            harness = Harness(language.harness, cwd, environ, tmp_path / "log")
            try:
                Play(harness, node, proxy, routes()).run(scenario)
            finally:
                harness.end()
    if language.name in EXAMPLES:
        _run_example(language, node)


def _run_example(language: Language, node: Node) -> None:
    """The one in its README, which says what it prints."""
    path, command = EXAMPLES[language.name]
    code, printed = blocks((SDK / language.name / "README.md").read_text())[:2]
    assert code.text == f"// {path}\n" + (SDK / language.name / path).read_text()
    ran = subprocess.run(
        command,
        cwd=language.folder,
        env={**os.environ, "CORVO_URL": node.url},
        check=True,
        capture_output=True,
        text=True,
        timeout=EXAMPLE_S,
    )
    assert ran.stdout == printed.text
