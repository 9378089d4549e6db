"""Who may import whom."""

import ast
import sys
from collections.abc import Iterator

import pytest

from tests.tidy.house import Module, Rule, caught, imports, is_under, violations, walk

ABOVE_THE_CORE = (
    "shards",
    "gateway",
    "corvo.cli",
    "corvo.client",
    "corvo.worker",
    "corvo.testing",
    "corvo.links",
    "corvo.runtime.process",
    "corvo.runtime.admin_password",
    "corvo.runtime.secret_file",
    "corvo.runtime.payload_keys",
    "corvo.runtime.certificate",
    "corvo.runtime.heartbeat",
    "corvo.runtime.movable_clock",
)
OURS = ("corvo", "shards", "gateway", "tests", "chaos", "benchmarks")


def core_imports_only_the_core(module: Module) -> Iterator[str]:
    if not module.is_core:
        return
    for node, name in imports(module):
        if is_under(name, *ABOVE_THE_CORE):
            yield f"{module.at(node)} imports {name}: the core knows nobody above it; hand in what it needs"


def core_leans_on_msgspec_only(module: Module) -> Iterator[str]:
    if not module.is_core:
        return
    for node, name in imports(module):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and top not in ("msgspec", "corvo", "shards", "gateway"):
            yield f"{module.at(node)} imports {top}: the core may use msgspec and the standard library only"


def shards_and_gateway_never_meet(module: Module) -> Iterator[str]:
    for one, other in (("shards", "gateway"), ("gateway", "shards")):
        if module.path.startswith(f"{one}/"):
            for node, name in imports(module):
                if is_under(name, other):
                    yield f"{module.at(node)} imports {name}: {one} and {other} speak over the wire (corvo/wire.py)"


def readers_and_writer_share_readdb_only(module: Module) -> Iterator[str]:
    for room, others in (
        ("readdb", ("gateway.search", "gateway.mirror")),
        ("search", ("gateway.mirror",)),
        ("mirror", ("gateway.search",)),
    ):
        if module.path.startswith(f"gateway/{room}/"):
            for node, name in imports(module):
                if is_under(name, *others):
                    yield f"{module.at(node)} imports {name}: what both need goes to gateway/readdb"


def nobody_imports_tests_or_tools(module: Module) -> Iterator[str]:
    for node, name in imports(module):
        if is_under(name, "tests", "chaos", "benchmarks"):
            yield f"{module.at(node)} imports {name}: the product does not know its tests"


def only_leaves_import_leaves(module: Module) -> Iterator[str]:
    if module.path.startswith(("corvo/cli/", "corvo/client/", "corvo/worker.py", "corvo/testing/")):
        return
    for node, name in imports(module):
        if is_under(name, "corvo.cli", "corvo.client", "corvo.worker", "corvo.testing"):
            yield f"{module.at(node)} imports {name}: only leaves import leaves; move what is shared to the core"


def _may_use(module: Module) -> set[str]:
    """Glue is imported by those who have its framework."""
    glue = {"django", "sqlalchemy", "starlette"} if module.path.startswith("corvo/client/contrib/") else set()
    return {"httpx", "msgspec", "websockets"} | glue


def client_stands_alone(module: Module) -> Iterator[str]:
    """It is installed without the rest, under the name `corvo_client`."""
    if not module.path.startswith("corvo/client/") or module.path.startswith("corvo/client/bench/"):
        return
    for node, name in imports(module):
        is_relative = isinstance(node, ast.ImportFrom) and node.level > 0
        top = name.split(".")[0]
        if is_relative and (is_under(name, "corvo.client.bench") or not is_under(name, "corvo.client")):
            yield f"{module.at(node)} imports {name}: the client is installed without it; derive what it needs"
        elif not is_relative and top in OURS:
            yield f"{module.at(node)} imports {name}: the client has another name elsewhere; write `from . import …`"
        elif not is_relative and top not in sys.stdlib_module_names | _may_use(module):
            yield f"{module.at(node)} imports {top}: the client may use httpx, msgspec and websockets only"


def raft_imports_nothing_of_ours(module: Module) -> Iterator[str]:
    if not module.path.startswith("shards/raft/"):
        return
    for node, name in imports(module):
        top = name.split(".")[0]
        if is_under(name, *OURS) and not is_under(name, "shards.raft"):
            yield f"{module.at(node)} imports {name}: Raft knows nothing of jobs; pass bytes and numbers"
        elif top not in sys.stdlib_module_names and top not in ("msgspec", *OURS):
            yield f"{module.at(node)} imports {top}: Raft may use msgspec and the standard library only"


def imports_stand_at_the_top(module: Module) -> Iterator[str]:
    for function in walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom) and "# lazy:" not in module.line(node):
                    yield f"{module.at(node)} imports inside a function: move it up, or say why with `# lazy: reason`"


# Rule · where a breach would stand · a breach
BREACHES = [
    (core_imports_only_the_core, "corvo/engine.py", "import shards.replica"),
    (core_imports_only_the_core, "corvo/engine.py", "from gateway.shards import client"),
    (core_imports_only_the_core, "corvo/ops/jobs/ack.py", "from corvo import client"),
    (core_imports_only_the_core, "corvo/ops/jobs/ack.py", "from corvo.cli.main import main"),
    (core_imports_only_the_core, "corvo/runtime/settings.py", "from corvo.runtime.process import take_lock"),
    (core_imports_only_the_core, "corvo/runtime/settings.py", "from .process import take_lock"),
    (core_imports_only_the_core, "corvo/runtime/settings.py", "from corvo.runtime.certificate import load_certificate"),
    (core_imports_only_the_core, "corvo/ops/jobs/ack.py", "from ...client import calls"),
    (core_leans_on_msgspec_only, "corvo/engine.py", "import structlog"),
    (core_leans_on_msgspec_only, "corvo/engine.py", "from pydantic import BaseModel"),
    (shards_and_gateway_never_meet, "shards/intake/admission.py", "from gateway.shards.client import Links"),
    (shards_and_gateway_never_meet, "gateway/shards/client.py", "import shards"),
    (readers_and_writer_share_readdb_only, "gateway/readdb/ddl.py", "from gateway.mirror import rows"),
    (readers_and_writer_share_readdb_only, "gateway/search/lag.py", "from gateway.mirror.rows import to_rows"),
    (readers_and_writer_share_readdb_only, "gateway/mirror/rows.py", "import gateway.search.lag"),
    (nobody_imports_tests_or_tools, "corvo/engine.py", "from tests.support import model"),
    (only_leaves_import_leaves, "gateway/app.py", "from corvo.client import calls"),
    (client_stands_alone, "corvo/client/http.py", "from corvo.ops.jobs.ack import AckBody"),
    (client_stands_alone, "corvo/client/http.py", "from corvo.client.calls import HttpCall"),
    (client_stands_alone, "corvo/client/http.py", "from ..model.errors import STATUS"),
    (client_stands_alone, "corvo/client/http.py", "from .bench.plan import BenchPlan"),
    (client_stands_alone, "corvo/client/http.py", "import uvloop"),
    (raft_imports_nothing_of_ours, "shards/raft/core.py", "from corvo.model.errors import Corrupt"),
    (raft_imports_nothing_of_ours, "shards/raft/core.py", "from shards.storage.leveldb import Disk"),
    (raft_imports_nothing_of_ours, "shards/raft/core.py", "from ..storage.leveldb import Disk"),
    (raft_imports_nothing_of_ours, "shards/raft/core.py", "import zmq"),
    (imports_stand_at_the_top, "corvo/engine.py", "def f():\n    import json"),
    (imports_stand_at_the_top, "corvo/engine.py", "class A:\n    async def f(self):\n        from json import loads"),
]
ALLOWED = [
    (core_imports_only_the_core, "corvo/cli/serve.py", "from corvo.runtime.process import take_lock"),
    (core_imports_only_the_core, "corvo/engine.py", "from corvo.endpoint import Operation"),
    (core_leans_on_msgspec_only, "corvo/engine.py", "import json, msgspec\nfrom corvo import ids"),
    (core_leans_on_msgspec_only, "corvo/runtime/process.py", "import structlog"),
    (only_leaves_import_leaves, "corvo/cli/commands/top.py", "from corvo.client import calls"),
    (
        client_stands_alone,
        "corvo/client/http.py",
        "import json, httpx, msgspec\nfrom . import calls\nfrom .trust import trusting",
    ),
    (client_stands_alone, "corvo/client/bench/engine.py", "import uvloop\nfrom corvo.client.http import Client"),
    (raft_imports_nothing_of_ours, "shards/raft/core.py", "import msgspec, heapq\nfrom shards.raft.log import Log"),
    (imports_stand_at_the_top, "corvo/cli/main.py", "def f():\n    import rich  # lazy: a third of the start-up time"),
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
