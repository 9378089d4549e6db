"""The libraries that are put to the test: how each is built, and which command is its harness."""

import shutil
import sys
from pathlib import Path

import msgspec

from sdk.conformance.scenario import Scenario

SDK = Path(__file__).parents[1]


class Language(msgspec.Struct, frozen=True):
    name: str
    folder: Path
    harness: tuple[str, ...]
    build: tuple[tuple[str, ...], ...] = ()
    needs: tuple[str, ...] = ()  # commands of its toolchain
    parts: tuple[str, ...] = ("client", "events", "worker")  # that it has
    transports: tuple[str, ...] = ("http", "stream")  # of its worker

    def has(self, scenario: Scenario) -> bool:
        used = {step.work.transport for step in scenario.steps if step.work is not None}
        return scenario.part in self.parts and used <= set(self.transports)

    @property
    def missing(self) -> list[str]:
        return [command for command in self.needs if shutil.which(command) is None]


LANGUAGES = (
    Language(
        "python",
        SDK / "python",
        (sys.executable, "-m", "sdk.conformance.python_harness"),
        transports=("stream",),
    ),
    Language(
        "typescript",
        SDK / "typescript",
        ("node", "build/conformance/harness.js"),
        build=(("npm", "ci", "--no-audit", "--no-fund"), ("npm", "run", "--silent", "build")),
        needs=("node", "npm"),
    ),
    Language(
        "go",
        SDK / "go",
        ("build/conformance",),
        build=(("go", "run", "./cmd/generate"), ("go", "build", "-o", "build/conformance", "./cmd/conformance")),
        needs=("go",),
    ),
)
