"""Rooms import downwards only, and a class name has one meaning."""

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.tidy.house import Module, caught, imports, modules, violations, walk
from tests.tidy.layers import COPIES, KNOWN_CYCLES, KNOWN_NAMESAKES, LAYERS, PUBLIC_WORDS


def breaches(module: Module) -> Iterator[tuple[ast.AST, str, str]]:
    """Every import of a room that lies above the importing one: the line, the importing room, the imported one."""
    for package, layers in LAYERS.items():
        folder = package.replace(".", "/") + "/"
        if not module.path.startswith(folder):
            continue
        own = module.path.removeprefix(folder).removesuffix(".py").split("/")[0]
        for node, name in imports(module):
            if not name.startswith(f"{package}."):
                continue
            room = _room(package, name)
            if room != own and layers.index(room) > layers.index(own):
                yield node, f"{package}.{own}", f"{package}.{room}"


def _room(package: str, name: str) -> str:
    """The room of an imported name; a name that is no room stands in the package's `__init__`."""
    room = name.removeprefix(f"{package}.").split(".")[0]
    return room if room in LAYERS[package] else "__init__"


def rooms_import_downwards(module: Module) -> Iterator[str]:
    for node, own, room in breaches(module):
        if (own, room) not in KNOWN_CYCLES:
            yield (
                f"{module.at(node)} imports {room}, which lies above {own} (tests/tidy/layers.py):"
                " hand in what is needed, or move the shared part down"
            )


def every_room_has_a_layer(paths: Iterable[str]) -> list[str]:
    missing: dict[str, None] = {}
    for path in paths:
        for package, layers in LAYERS.items():
            folder = package.replace(".", "/") + "/"
            if path.startswith(folder):
                room = path.removeprefix(folder).removesuffix(".py").split("/")[0]
                if room not in layers:
                    missing[f"{package}.{room} has no layer: add it to LAYERS in tests/tidy/layers.py"] = None
    return list(missing)


def namesakes(all_modules: Iterable[Module]) -> dict[str, list[str]]:
    """Class names that are defined more than once, with the places."""
    places: dict[str, list[str]] = {}
    for module in all_modules:
        if module.path in COPIES | PUBLIC_WORDS:
            continue
        for node in walk(module):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module.at(node))
    return {name: found for name, found in places.items() if len(found) > 1}


def test_rooms_import_downwards() -> None:
    assert violations(rooms_import_downwards) == []


def test_every_room_has_a_layer() -> None:
    assert every_room_has_a_layer(module.path for module in modules()) == []


def test_every_layer_has_a_room() -> None:
    paths = [module.path for module in modules()]
    for package, layers in LAYERS.items():
        folder = package.replace(".", "/") + "/"
        for room in layers:
            is_there = any(path == f"{folder}{room}.py" or path.startswith(f"{folder}{room}/") for path in paths)
            assert is_there, f"{package}.{room} is gone: delete its line in tests/tidy/layers.py"


def test_no_known_cycle_is_kept_that_is_gone() -> None:
    found = {(own, room) for module in modules() for _, own, room in breaches(module)}
    assert found >= KNOWN_CYCLES, "delete these lines of KNOWN_CYCLES in tests/tidy/layers.py"


def test_a_class_name_has_one_meaning() -> None:
    found = {name: places for name, places in namesakes(modules()).items() if name not in KNOWN_NAMESAKES}
    assert found == {}, "rename one of them after what sets it apart"


def test_no_known_namesake_is_kept_that_is_gone() -> None:
    assert set(namesakes(modules())) >= KNOWN_NAMESAKES, "delete these names of KNOWN_NAMESAKES in tests/tidy/layers.py"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("corvo/model/job.py", "from corvo.state.tables import Tables"),
        ("corvo/state/transitions.py", "from corvo.rules.errands.forget import Forget"),
        ("corvo/queries/job.py", "from corvo import ops"),
        ("corvo/ops/jobs/ack.py", "from ...engine import apply_entry"),
        ("corvo/ops/batches/seal_batch.py", "from corvo.ops.jobs.ack import Ack"),
        ("corvo/cli/screen/show.py", "def f():\n    from corvo.cli.commands import job  # lazy: slow"),
        ("shards/raft/core.py", "from shards.storage.leveldb import Disk"),
        ("shards/storage/leveldb.py", "if TYPE_CHECKING:\n    from shards.replica import Replica"),
        ("gateway/http/messages.py", "from gateway.api import stream"),
        ("gateway/app.py", "import gateway.__main__"),
    ],
)
def test_an_import_upwards_is_caught(path: str, text: str) -> None:
    assert caught(rooms_import_downwards, path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("corvo/state/tables.py", "from corvo.model.job import Job\nfrom corvo.state import keys"),
        ("corvo/cli/main.py", "from corvo import __version__"),
        ("corvo/ops/bulk/act_on_jobs.py", "from corvo.ops.jobs.hold import Hold"),
        ("shards/replica.py", "from corvo.engine import apply_entry\nfrom shards.raft import Raft"),
    ],
)
def test_an_import_downwards_is_left_alone(path: str, text: str) -> None:
    assert caught(rooms_import_downwards, path, text) == []


def test_a_room_without_a_layer_is_caught() -> None:
    assert every_room_has_a_layer(["gateway/attic/chest.py"])
    assert every_room_has_a_layer(["shards/chest.py"])
    assert every_room_has_a_layer(["shards/replica.py"]) == []


def test_a_namesake_is_caught_also_a_private_one_and_one_inside_a_function() -> None:
    one = Module("corvo/engine.py", "", ast.parse("class _Step: ..."))
    other = Module("shards/loop.py", "", ast.parse("def f():\n    class _Step: ..."))
    assert namesakes([one, other]) == {"_Step": ["corvo/engine.py:1", "shards/loop.py:2"]}
