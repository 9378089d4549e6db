"""Decisions are numbered without a gap, have their three parts, and know every package."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


def test_the_numbers_have_no_gap() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name)
def test_a_decision_has_its_number_and_three_parts(path: Path) -> None:
    text = path.read_text()

    assert text.startswith(f"# {int(path.name[:4])}. ")
    assert re.findall(r"^\*\*([A-Z][a-z ]+)\.\*\*", text, re.MULTILINE) == ["Context", "Choice", "What we gave up"]


def test_every_package_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[>=\[]", need)[0] for need in project["dependencies"]}
    for_developers = {re.split(r"[>=\[]", need)[0] for need in project["optional-dependencies"]["dev"]}
    text = (ROOT / "docs" / "decisions" / "0009-dependencies.md").read_text()

    listed = {name for row in re.findall(r"^\| ([a-z0-9, -]+) \|", text, re.MULTILINE) for name in row.split(", ")}
    assert listed - {"package"} == wanted
    assert all(name in text for name in for_developers)
