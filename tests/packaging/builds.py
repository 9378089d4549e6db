"""Distributions, built as `make dist` does but offline, from a copy of the tree; environments to install them in."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.tidy.tracked import ROOT, ignored_names

BUILT_FROM = ("corvo", "shards", "gateway", "sdk", "README.md", "LICENSE", "pyproject.toml")
SERVER, CLIENT = "corvo_server", "corvo_client"
_BUILD_S = 180.0


def build(folder: Path) -> Path:
    """Builds both, each wheel from its own sdist. Returns the folder of the four files."""
    tree, dist = folder / "tree", folder / "dist"
    tree.mkdir()
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns(*ignored_names())
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, tree)
    for project in (tree, tree / "sdk" / "python"):
        run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist), str(project)], cwd=folder)
    return dist


def run(command: list[str], cwd: Path, **environment: str) -> str:
    """Outside of the tree, with nothing of it on the path."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=_BUILD_S,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Environment:
    """A new environment. Offline, it borrows the packages of others from the one that runs the tests, and nothing of
    ours: an editable install is found by a hook that only its own environment runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run([sys.executable, "-m", "venv", "--without-pip", str(folder)], cwd=folder.parent)
        self.python = folder / "bin" / "python"
        self.packages = Path(run([str(self.python), "-c", _PURELIB], cwd=folder.parent).strip())
        (self.packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def install(self, wheel: Path) -> None:
        self._pip("install", "--no-index", "--no-deps", str(wheel))

    def uninstall(self, name: str) -> None:
        self._pip("uninstall", "--yes", name)

    def _pip(self, *words: str) -> None:
        run([sys.executable, "-m", "pip", "--python", str(self.python), *words], cwd=self.folder)

    def says(self, code: str) -> str:
        return run([str(self.python), "-c", code], cwd=self.folder).strip()


_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
