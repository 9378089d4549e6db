"""Refusals are known, crashes are not swallowed, types are not waved through."""

import ast
import re
from collections.abc import Iterator

import pytest

from corvo.model.errors import STATUS
from tests.tidy.house import Module, Rule, caught, dotted, modules, violations, walk

# The only files that may catch everything: each ends something or passes it on. Path → how often. Edit with care.
BROAD_EXCEPT_ALLOWED: dict[str, int] = {
    # A handler may raise anything, and its job has failed then: in the loop, in a thread, in a process.
    "corvo/client/worker/runners.py": 2,
    "corvo/client/worker/processes.py": 1,
    "corvo/testing/inline.py": 2,
    "gateway/app.py": 1,  # the outermost frame of a request
    "gateway/access/registry.py": 2,  # a fault must neither end the following nor hide a revoked key from the others
    "gateway/shards/client.py": 1,  # a document that cannot be read must not leave its call without an end
    "gateway/mirror/database.py": 1,  # rolls back, then raises
    "shards/storage/sync_thread.py": 1,  # carries it from the thread to whoever waits there, who raises it
    "shards/storage/leveldb.py": 1,  # whatever LevelDB says, the handle is finished: raises DiskFailed
}

_BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[[a-z])")


def broad_handlers(module: Module) -> list[ast.AST]:
    broad: list[ast.AST] = []
    for node in walk(module):
        if isinstance(node, ast.ExceptHandler):
            caught_types = [] if node.type is None else [dotted(leaf) for leaf in ast.walk(node.type)]
            if node.type is None or {"Exception", "BaseException"} & set(caught_types):
                broad.append(node)
        is_suppress = isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] == "suppress"
        if is_suppress and any(dotted(arg) in ("Exception", "BaseException") for arg in node.args):
            broad.append(node)
    return broad


def nobody_swallows_everything(module: Module) -> Iterator[str]:
    for node in broad_handlers(module)[BROAD_EXCEPT_ALLOWED.get(module.path, 0) :]:
        yield (
            f"{module.at(node)} catches everything: name the errors you expect and let the rest end the process"
            " (or argue for a line in BROAD_EXCEPT_ALLOWED)"
        )


def ignored_types_say_which(module: Module) -> Iterator[str]:
    for number, line in enumerate(module.text.splitlines(), 1):
        if _BARE_IGNORE.search(line):
            yield f"{module.path}:{number} ignores every type error: write # type: ignore[code]"


def refusals_are_in_the_table(module: Module) -> Iterator[str]:
    for node in walk(module):
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func).split(".")[-1]
        codes: list[ast.AST] = []
        if called in ("Refusal", "Refused"):
            codes = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "code")]
        elif called == "Endpoint":
            codes = [leaf for keyword in node.keywords if keyword.arg == "refusals" for leaf in ast.walk(keyword.value)]
        for code in codes:
            for leaf in ast.walk(code):
                if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str) and leaf.value not in STATUS:
                    yield f"{module.at(node)} refuses with {leaf.value!r}: add the code to corvo.model.errors.STATUS"


BREACHES = [
    (nobody_swallows_everything, "corvo/engine.py", "try: f()\nexcept Exception: pass"),
    (nobody_swallows_everything, "corvo/engine.py", "try: f()\nexcept: pass"),
    (nobody_swallows_everything, "corvo/engine.py", "try: f()\nexcept (ValueError, BaseException) as e: pass"),
    (nobody_swallows_everything, "corvo/engine.py", "with contextlib.suppress(Exception): f()"),
    (
        nobody_swallows_everything,
        "gateway/app.py",
        "try: f()\nexcept Exception: pass\ntry: f()\nexcept Exception: pass",
    ),
    (ignored_types_say_which, "corvo/engine.py", "x = 1  # type: " + "ignore"),
    (ignored_types_say_which, "corvo/engine.py", "x = 1  #type:" + "ignore  # because"),
    (refusals_are_in_the_table, "corvo/engine.py", 'raise Refusal("NO_SUCH_CODE", "no")'),
    (refusals_are_in_the_table, "corvo/engine.py", 'errors.Refused(code="NO_SUCH_CODE", message="no")'),
    (refusals_are_in_the_table, "corvo/engine.py", 'Refused("LEASE_LOST" if late else "NO_SUCH_CODE", "no")'),
    (refusals_are_in_the_table, "corvo/ops/jobs/ack.py", 'Endpoint(refusals=("NO_SUCH_CODE",))'),
]
ALLOWED = [
    (nobody_swallows_everything, "corvo/engine.py", "try: f()\nexcept (ValueError, KeyError): pass"),
    (nobody_swallows_everything, "gateway/app.py", "try: f()\nexcept Exception: pass"),
    (ignored_types_say_which, "corvo/engine.py", "x = 1  # type: ignore[union-attr]  # a text stream"),
    (refusals_are_in_the_table, "corvo/engine.py", 'raise Refusal("WRONG_STATE", "NOT_A_CODE but a sentence")'),
    (refusals_are_in_the_table, "corvo/engine.py", "raise Refusal(code, message)"),
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


def test_no_allowance_is_kept_that_nobody_uses() -> None:
    used = {module.path: len(broad_handlers(module)) for module in modules()}

    assert {path: used.get(path, 0) for path in BROAD_EXCEPT_ALLOWED} == BROAD_EXCEPT_ALLOWED, "shorten the list"
