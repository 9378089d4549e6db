"""A reader takes the steps of the README and the guides in a fresh copy of this project: it is as tidy as before.

What our own commands and guides leave behind is ignored by git, and no rule of the house stumbles over it.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.node import Node
from chaos.ports import free_ports
from tests.cli.local_clusters import READY_S, started
from tests.docs.pages import ROOT, blocks, markdown_files
from tests.tidy.test_files import FOLDERS
from tests.tidy.tracked import ignored_names

pytestmark = pytest.mark.system

_FILE_NAME = re.compile(r"# ([\w.-]+(?:/[\w.-]+)*\.[a-z]+)\n")  # the first line of a block that is a file


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """As a clone would be, with what is not committed yet."""
    folder = tmp_path / "corvo"
    folder.mkdir()
    for name in (*FOLDERS, *(path.name for path in ROOT.iterdir() if path.is_file() and path.name != ".git")):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns(*ignored_names()))
        else:
            shutil.copy2(ROOT / name, folder)
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def files_of_the_guides() -> dict[str, str]:
    found = {}
    for page in markdown_files():
        for block in blocks(page.read_text()):
            name = _FILE_NAME.match(block.text)
            if name is not None and block.language in ("python", "toml", "yaml"):
                found[name[1]] = block.text
    return found


def left_folders(copy: Path) -> list[str]:
    """Made since, and neither tracked nor ignored."""
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=copy, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [line[3:] for line in status if line.startswith("?? ") and line.endswith("/")]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_house_is_tidy_after_the_steps_of_the_guides(copy: Path, tmp_path: Path) -> None:
    for name, text in files_of_the_guides().items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(text)
    Node.start(copy / "data").stop()
    command = [sys.executable, "-m", "corvo.cli.main", "local", "--nodes", "3", "--port", str(free_ports(3, 1)[0])]
    with started(tmp_path, command, cwd=copy) as local:
        local.await_(lambda: "ready" in local.output, READY_S)

    assert {path.name for path in copy.iterdir()} >= {"data", "corvo-local", "production"}
    assert left_folders(copy) == [], "add them to .gitignore"
    tidy = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "tests/tidy"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tidy.returncode == 0, tidy.stdout
