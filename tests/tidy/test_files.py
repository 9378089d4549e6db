"""Files and folders: where things are, what they are called, and that nobody forgot to register one."""

import ast
import importlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from corvo import ops, queries
from tests.tidy.house import ROOT, Module, caught, dotted, modules, violations, walk
from tests.tidy.tracked import top_folders

FOLDERS = {"corvo", "shards", "gateway", "tests", "chaos", "k8s", "benchmarks", "docs", "sdk"}
FORBIDDEN_WORDS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "base"}
NAMED_PLACES = ("corvo", "shards", "gateway", "tests", "chaos", "benchmarks")


def stray_folders(names: Iterable[str]) -> list[str]:
    found = {name for name in names if not name.startswith(".")}
    return [
        *(
            f"{name}/ is no part of the house: put it under one of {sorted(FOLDERS)}"
            for name in sorted(found - FOLDERS)
        ),
        *(f"{name}/ is missing: the house has it" for name in sorted(FOLDERS - found)),
    ]


def forbidden_names(paths: Iterable[str]) -> list[str]:
    sentences = []
    for path in paths:
        words = {word for part in Path(path).with_suffix("").parts for word in re.split(r"[_\-.]", part.lower())}
        for word in sorted(words & FORBIDDEN_WORDS):
            sentences.append(
                f"{path} is called {word!r}: name it after the thing it holds, or move that to its only user"
            )
    return sentences


def modules_say_what_they_are(module: Module) -> Iterator[str]:
    if not ast.get_docstring(module.tree):
        yield f"{module.path} has no docstring: say what it is, what it is not, and who calls it"


def untested_operations(modules_of_ops: Iterable[str], tests: set[str]) -> list[str]:
    sentences = []
    for path in modules_of_ops:
        if path.endswith("__init__.py"):
            continue
        folder, name = path.rsplit("/", 1)
        wanted = f"tests/{folder}/test_{name}"
        if wanted not in tests:
            sentences.append(f"{path} has no test: write {wanted}")
    return sentences


def asks_of(module: Module) -> list[str]:
    """Classes that are operations or queries: every class with a number that is more than a plain struct."""
    return [
        node.name
        for node in walk(module)
        if isinstance(node, ast.ClassDef)
        and any(keyword.arg == "tag" for keyword in node.keywords)
        and not any(dotted(base).split(".")[-1] == "Struct" for base in node.bases)
    ]


def unregistered(module: Module, registered: set[str], endpoint_names: set[str]) -> list[str]:
    if not re.fullmatch(r"corvo/(ops/\w+|queries)/\w+\.py", module.path) or module.path.endswith("__init__.py"):
        return []
    register = "corvo/ops/__init__.py" if module.path.startswith("corvo/ops/") else "corvo/queries/__init__.py"
    sentences = [
        f"{module.path} has {name}, which is not registered: add it in {register}"
        for name in asks_of(module)
        if name not in registered
    ]
    for node in walk(module):
        if isinstance(node, ast.Call) and dotted(node.func) == "Endpoint":
            names = [keyword.value for keyword in node.keywords if keyword.arg == "name"]
            if any(isinstance(name, ast.Constant) and name.value not in endpoint_names for name in names):
                sentences.append(f"{module.at(node)} has a route that is not registered: add ENDPOINTS in {register}")
    return sentences


REGISTERED = {ask.__name__ for ask in (*ops.OPERATIONS, *queries.QUERIES)}
ENDPOINT_NAMES = {endpoint.name for endpoint in (*ops.ENDPOINTS, *queries.ENDPOINTS)}


def python_files(*folders: str) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def test_the_house_has_these_folders_and_no_others() -> None:
    assert stray_folders(top_folders()) == []


def test_no_file_is_a_drawer() -> None:
    assert forbidden_names(python_files(*NAMED_PLACES)) == []


def test_every_module_says_what_it_is() -> None:
    assert violations(modules_say_what_they_are) == []


def test_every_operation_has_a_test_of_its_name() -> None:
    assert untested_operations(python_files("corvo/ops"), set(python_files("tests"))) == []


def test_every_operation_query_and_route_is_registered() -> None:
    assert [sentence for module in modules() for sentence in unregistered(module, REGISTERED, ENDPOINT_NAMES)] == []


def test_the_guard_sees_everything_that_is_registered() -> None:
    """A kind of class that the guard overlooks would show here: the registered classes of its kind are missing."""
    folders = ("corvo/ops/", "corvo/queries/")
    seen = {name for module in modules() if module.path.startswith(folders) for name in asks_of(module)}
    assert seen == REGISTERED


def test_every_registered_operation_has_a_file_of_its_name() -> None:
    for ask in ops.OPERATIONS:
        name = ask.__module__.rsplit(".", 1)[1]
        assert name == re.sub(r"(?<!^)(?=[A-Z])", "_", ask.__name__).lower(), f"{ask} belongs into a file of its own"
        assert importlib.import_module(ask.__module__).__doc__


@pytest.mark.parametrize("name", ["src", "scripts", "lib"])
def test_a_stray_folder_is_caught(name: str) -> None:
    assert stray_folders([*FOLDERS, name])


def test_a_missing_folder_is_caught() -> None:
    assert stray_folders(FOLDERS - {"chaos"})


def _house(root: Path, *others: str) -> Path:
    for folder in (*FOLDERS, *others):
        (root / folder).mkdir()
        (root / folder / "file").touch()
    shutil.copy(ROOT / ".gitignore", root)
    return root


MADE = [".venv", "data", "corvo_server.egg-info", "build", "dist", "corvo-local", "production", "tls-data"]


@pytest.mark.parametrize("name", MADE)
def test_what_commands_and_guides_make_is_left_alone(name: str, tmp_path: Path) -> None:
    assert stray_folders(top_folders(_house(tmp_path, name))) == []


def test_a_stray_folder_of_an_archive_is_caught(tmp_path: Path) -> None:
    assert stray_folders(top_folders(_house(tmp_path, "scripts")))


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_stray_folder_is_caught_once_git_knows_it(tmp_path: Path) -> None:
    root = _house(tmp_path, "notes-of-a-reader")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    subprocess.run(["git", "add", *FOLDERS], cwd=root, check=True)
    assert stray_folders(top_folders(root)) == []

    subprocess.run(["git", "add", "notes-of-a-reader"], cwd=root, check=True)
    assert len(stray_folders(top_folders(root))) == 1


@pytest.mark.parametrize("path", ["corvo/utils.py", "gateway/job_helpers.py", "shards/base/x.py", "tests/common.py"])
def test_a_drawer_is_caught(path: str) -> None:
    assert forbidden_names([path])


@pytest.mark.parametrize("path", ["corvo/database.py", "corvo/runtime/settings.py", "gateway/commonplace.py"])
def test_a_word_inside_a_word_is_left_alone(path: str) -> None:
    assert forbidden_names([path]) == []


@pytest.mark.parametrize("text", ["", "import json", "# a comment is no docstring"])
def test_a_module_without_a_docstring_is_caught(text: str) -> None:
    assert caught(modules_say_what_they_are, "corvo/x.py", text)


def test_an_operation_without_a_test_is_caught() -> None:
    assert untested_operations(["corvo/ops/jobs/hold.py"], {"tests/corvo/ops/jobs/test_ack.py"})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("corvo/ops/jobs/juggle.py", "class Juggle(Operation, tag=7): ..."),
        ("corvo/ops/upkeep/expire.py", "class Expire(operation.Operation, tag=102): ..."),
        ("corvo/ops/bulk/juggle_all.py", "class JuggleAll(Compound, tag=103): ..."),
        ("corvo/queries/juggler.py", "class GetJuggler(Query, tag=1003): ..."),
        ("corvo/queries/juggler.py", "class GetJuggler(Read, tag=1003): ..."),
        ("corvo/queries/juggler.py", "class GetJuggler(endpoint.Read, tag=1003): ..."),
        ("corvo/ops/jobs/juggle.py", 'ENDPOINTS = (Endpoint(name="juggle"),)'),
    ],
)
def test_what_is_not_registered_is_caught(path: str, text: str) -> None:
    assert unregistered(Module(path, text, ast.parse(text)), REGISTERED, ENDPOINT_NAMES)
