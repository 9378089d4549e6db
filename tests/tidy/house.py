"""What the rules look at: every module of the house, read and parsed once.

A rule is a function from a `Module` to sentences, each with its place and its remedy. `violations` runs a rule over
the house; `caught` runs it over a snippet, for the test that every rule must have: that it can fail.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("corvo", "shards", "gateway")
# What touches the machine; no part of the pure core.
LEAVES = (
    "corvo/cli/",
    "corvo/client/",
    "corvo/worker.py",
    "corvo/testing/",
    "corvo/links/",
    "corvo/runtime/process.py",
    "corvo/runtime/admin_password.py",
    "corvo/runtime/secret_file.py",
    "corvo/runtime/payload_keys.py",
    "corvo/runtime/certificate.py",
    "corvo/runtime/heartbeat.py",
    "corvo/runtime/movable_clock.py",
)


class Module(NamedTuple):
    path: str  # from the root, with slashes
    text: str
    tree: ast.Module

    @property
    def is_core(self) -> bool:
        return self.path.startswith("corvo/") and not self.path.startswith(LEAVES)

    def at(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)}"

    def line(self, node: ast.AST) -> str:
        return self.text.splitlines()[getattr(node, "lineno", 1) - 1]


Rule = Callable[[Module], Iterable[str]]


@cache
def modules() -> tuple[Module, ...]:
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return tuple(_module(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths)


def _module(path: str, text: str) -> Module:
    return Module(path, text, ast.parse(text))


def violations(rule: Rule) -> list[str]:
    return [sentence for module in modules() for sentence in rule(module)]


def caught(rule: Rule, path: str, text: str) -> list[str]:
    return list(rule(_module(path, text)))


@cache
def walk(module: Module) -> tuple[ast.AST, ...]:
    """Every node of the module, walked once for all rules."""
    return tuple(ast.walk(module.tree))


@cache
def imports(module: Module) -> tuple[tuple[ast.AST, str], ...]:
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Every imported module by its full name; `from a import b` counts as `a.b` and relative ones as written out."""
    package = module.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".").split(".")
    for node in walk(module):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node, name.name
        elif isinstance(node, ast.ImportFrom):
            up = node.level - (1 if module.path.endswith("/__init__.py") else 0)
            above = ".".join(package[: len(package) - up]) if node.level else ""
            source = ".".join(part for part in (above, node.module or "") if part)
            for name in node.names:
                yield node, f"{source}.{name.name}"


def is_under(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def docstrings(tree: ast.Module) -> set[int]:
    """Identities of the constants that are documentation."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                found.add(id(body[0].value))
    return found


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of attributes on a name, else the last attribute."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        above = dotted(node.value)
        return f"{above}.{node.attr}" if above else node.attr
    return ""
