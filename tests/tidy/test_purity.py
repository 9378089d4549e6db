"""The core reads no clock, rolls no dice and touches no machine; shards have one colour."""

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.house import Module, Rule, caught, dotted, imports, is_under, violations, walk

# Module → what to do instead.
BANNED_MODULES = {
    "time": "time is handed in: use tables.now, or take a clock as an argument",
    "random": "dice are handed in: take the number as an argument",
    "secrets": "dice are handed in: take the number as an argument",
    "uuid": "ids are minted by corvo.model.ids.Minter, before the log",
    "socket": "the core does no I/O: this belongs to shards or gateway",
    "asyncio": "the core is synchronous: this belongs to gateway",
    "threading": "the core runs in one thread: this belongs to shards or gateway",
    "subprocess": "the core starts nothing: this belongs to corvo.cli",
}
BANNED_CALLS = {
    "open": "the core does no I/O: take bytes as an argument",
    "print": "the core says nothing: return it",
    "input": "the core asks nobody: take an argument",
    "datetime.now": "time is handed in: use tables.now, or take a clock as an argument",
    "datetime.utcnow": "time is handed in: use tables.now, or take a clock as an argument",
    "datetime.today": "time is handed in: use tables.now, or take a clock as an argument",
    "date.today": "time is handed in: use tables.now, or take a clock as an argument",
    "os.getenv": "the environment is handed to corvo.runtime.settings.load",
    "os.urandom": "dice are handed in: take the number as an argument",
}
BANNED_NAMES = {"os.environ": "the environment is handed to corvo.runtime.settings.load"}


def core_is_pure(module: Module) -> Iterator[str]:
    if not module.is_core:
        return
    for node, name in imports(module):
        for banned, remedy in BANNED_MODULES.items():
            if is_under(name, banned):
                yield f"{module.at(node)} imports {banned}: {remedy}"
        if name in ("os.environ", "os.getenv", "os.urandom"):
            yield f"{module.at(node)} imports {name}: the environment is handed to corvo.runtime.settings.load"
    for node in walk(module):
        if isinstance(node, ast.Call):
            called = dotted(node.func)
            for banned, remedy in BANNED_CALLS.items():
                if called == banned or called.endswith(f".{banned}"):
                    yield f"{module.at(node)} calls {banned}: {remedy}"
        elif isinstance(node, ast.Attribute) and dotted(node) in BANNED_NAMES:
            yield f"{module.at(node)} reads {dotted(node)}: {BANNED_NAMES[dotted(node)]}"


def shards_are_synchronous(module: Module) -> Iterator[str]:
    if not module.path.startswith("shards/"):
        return
    for node, name in imports(module):
        if is_under(name, "asyncio", "uvloop", "zmq.asyncio"):
            yield f"{module.at(node)} imports {name}: a shard is one synchronous loop (shards/loop.py)"
    for node in walk(module):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"{module.at(node)} is async: a shard is one synchronous loop (shards/loop.py)"


def raft_reads_no_clock_and_rolls_no_dice(module: Module) -> Iterator[str]:
    if not module.path.startswith("shards/raft/"):
        return
    for node, name in imports(module):
        for banned in ("time", "secrets", "uuid", "socket", "os", "threading"):
            if is_under(name, banned):
                yield f"{module.at(node)} imports {banned}: Raft is handed its time and its randomness"
    for node in walk(module):
        # `random.Random` as a type is how randomness is handed in; the module's own functions are a hidden dice.
        if isinstance(node, ast.Attribute) and dotted(node).startswith("random.") and dotted(node) != "random.Random":
            yield f"{module.at(node)} uses {dotted(node)}: Raft is handed its randomness, as a random.Random"


BREACHES = [
    (core_is_pure, "corvo/engine.py", "import time\ntime.time()"),
    (core_is_pure, "corvo/engine.py", "from time import time_ns"),
    (core_is_pure, "corvo/engine.py", "from datetime import datetime, UTC\ndatetime.now(UTC)"),
    (core_is_pure, "corvo/engine.py", "import datetime\ndatetime.datetime.now()"),
    (core_is_pure, "corvo/engine.py", "import random"),
    (core_is_pure, "corvo/engine.py", "from uuid import uuid4"),
    (core_is_pure, "corvo/runtime/settings.py", "import os\nos.environ['A']"),
    (core_is_pure, "corvo/runtime/settings.py", "from os import environ"),
    (core_is_pure, "corvo/runtime/settings.py", "import os\nos.getenv('A')"),
    (core_is_pure, "corvo/runtime/settings.py", "open('a')"),
    (core_is_pure, "corvo/runtime/settings.py", "from pathlib import Path\nPath('a').open()"),
    (core_is_pure, "corvo/wire.py", "import socket"),
    (core_is_pure, "corvo/wire.py", "print(1)"),
    (core_is_pure, "corvo/wire.py", "import asyncio"),
    (shards_are_synchronous, "shards/loop.py", "import asyncio"),
    (shards_are_synchronous, "shards/loop.py", "import zmq.asyncio"),
    (shards_are_synchronous, "shards/loop.py", "async def f(): ..."),
    (raft_reads_no_clock_and_rolls_no_dice, "shards/raft/core.py", "import time"),
    (raft_reads_no_clock_and_rolls_no_dice, "shards/raft/core.py", "import random\nrandom.random()"),
]
ALLOWED = [
    (core_is_pure, "corvo/runtime/process.py", "import os\nos.environ['A']"),
    (core_is_pure, "corvo/cli/main.py", "print(1)"),
    (core_is_pure, "corvo/client/aio.py", "import asyncio"),
    (core_is_pure, "corvo/model/timestamps.py", "from datetime import datetime\ndatetime.fromtimestamp(1)"),
    (raft_reads_no_clock_and_rolls_no_dice, "shards/raft/core.py", "import random\ndef f(dice: random.Random): ..."),
]
RULES = sorted({rule for rule, _, _ in BREACHES}, key=lambda rule: rule.__name__)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_rule(rule: Rule) -> None:
    assert violations(rule) == []


@pytest.mark.parametrize(("rule", "path", "text"), BREACHES)
def test_a_breach_is_caught(rule: Rule, path: str, text: str) -> None:
    assert caught(rule, path, text)


@pytest.mark.parametrize(("rule", "path", "text"), ALLOWED)
def test_what_is_allowed_is_left_alone(rule: Rule, path: str, text: str) -> None:
    assert caught(rule, path, text) == []
