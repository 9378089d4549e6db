"""The interface of a scenario: its input and its registration."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from benchmarks.figures import Findings
from benchmarks.processes import ROOT
from benchmarks.rivals.rival import Tools

# The prototype's payload, so that both sides carry the same bytes.
PAYLOAD = {"to": "user@example.com", "template": "welcome", "body": "y" * 50}

Advance = Callable[[float], None]  # reports progress within the stage


class Watch(Protocol):
    """Shows progress."""

    def stage(self, label: str, total: float) -> Advance: ...


class Setup(msgspec.Struct, frozen=True):
    folder: Path  # empty, removed afterwards
    watch: Watch
    rounds: int
    round_s: float  # of one measurement under load
    is_quick: bool
    backlog: int
    prototype: Path | None  # None if it is missing
    flags: tuple[str, ...] = ()  # for `corvo server`
    rivals: Tools = Tools((Path(sys.executable),), ROOT / "node_modules")
    rivals_durable: bool = False  # as durable as possible, instead of their default
    is_huge: bool = False  # include the largest size of a scenario


class Scenario(NamedTuple):
    name: str
    title: str
    run: Callable[[Setup], Findings]
    is_long: bool = False  # runs only when named


NO_PROTOTYPE = "the prototype is not there (--prototype PATH): no ratio to it"
