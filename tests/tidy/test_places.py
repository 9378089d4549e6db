"""Things that have one place: a job's state, the bytes of keys, SQL."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.house import Module, Rule, caught, docstrings, dotted, modules, violations, walk

STATE_WRITER = "corvo/state/transitions.py"
KEY_WRITER = "corvo/state/keys.py"
SQL_FOLDERS = ("gateway/readdb/", "gateway/mirror/", "gateway/search/")

_KEY_BYTES = re.compile(rb"(?:[a-z]{1,2}\||\0[a-z]{2,})")
_SQL = re.compile(
    r"\b(?:SELECT\s.+\sFROM\s|INSERT\s+(?:OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s"
    r"|(?:CREATE|DROP|ALTER)\s+(?:UNIQUE\s+|VIRTUAL\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\s|PRAGMA\s+\w)",
    re.DOTALL,
)


def only_the_door_gives_a_job_its_state(module: Module) -> Iterator[str]:
    if module.path == STATE_WRITER:
        return
    remedy = "only corvo/state/transitions.py moves a job: call change(tables, job, verb)"
    for node in walk(module):
        targets: list[ast.AST] = []
        if isinstance(node, ast.Assign):
            targets = [leaf for target in node.targets for leaf in ast.walk(target)]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr == "state" and _is_job(module, target.value):
                yield f"{module.at(node)} assigns {dotted(target)}: {remedy}"
        if isinstance(node, ast.Call):
            called = dotted(node.func)
            names_state = any(keyword.arg == "state" for keyword in node.keywords)
            if called.split(".")[-1] == "replace" and names_state:
                yield f"{module.at(node)} replaces a state: {remedy}"
            if called == "setattr" and any(isinstance(arg, ast.Constant) and arg.value == "state" for arg in node.args):
                yield f"{module.at(node)} sets a state: {remedy}"


def _is_job(module: Module, owner: ast.AST) -> bool:
    """In the core everything with a state is a job; elsewhere what is called one. `self.state` is somebody's own."""
    name = dotted(owner).split(".")[-1]
    return "job" in name.lower() or (module.is_core and name != "self")


def only_keys_knows_the_bytes_of_keys(module: Module) -> Iterator[str]:
    if module.path == KEY_WRITER:
        return
    for node in walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes) and _KEY_BYTES.match(node.value):
            yield f"{module.at(node)} writes the key bytes {node.value!r}: name them in corvo/state/keys.py"


def sql_lives_beside_the_read_database(module: Module) -> Iterator[str]:
    if module.path.startswith(SQL_FOLDERS):
        return
    documentation = docstrings(module.tree)
    for node in walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            match = _SQL.search(node.value)
            if match:
                yield f"{module.at(node)} holds SQL ({match[0].strip()[:20]} …): move it beside the read database"


BREACHES = [
    (only_the_door_gives_a_job_its_state, "corvo/ops/jobs/ack.py", "job.state = 2"),
    (only_the_door_gives_a_job_its_state, "corvo/ops/jobs/ack.py", "found.state = State.DEAD"),
    (only_the_door_gives_a_job_its_state, "corvo/ops/jobs/ack.py", "a, job.state = 1, 2"),
    (only_the_door_gives_a_job_its_state, "corvo/ops/jobs/ack.py", "job.state: int = 2"),
    (only_the_door_gives_a_job_its_state, "corvo/ops/jobs/ack.py", "msgspec.structs.replace(job, state=2)"),
    (only_the_door_gives_a_job_its_state, "corvo/ops/jobs/ack.py", "setattr(job, 'state', 2)"),
    (only_the_door_gives_a_job_its_state, "shards/replica.py", "self.job.state = 2"),
    (only_keys_knows_the_bytes_of_keys, "shards/feed.py", 'scan(b"j|", b"j}")'),
    (only_keys_knows_the_bytes_of_keys, "shards/feed.py", 'key = b"qa|%b" % name'),
    (only_keys_knows_the_bytes_of_keys, "shards/feed.py", 'get(b"\\0applied")'),
    (sql_lives_beside_the_read_database, "gateway/app.py", 'db.execute("SELECT id FROM jobs")'),
    (sql_lives_beside_the_read_database, "gateway/app.py", 'f"INSERT OR REPLACE INTO {table} VALUES (1)"'),
    (sql_lives_beside_the_read_database, "shards/feed.py", 'x = "PRAGMA journal_mode=WAL"'),
    (sql_lives_beside_the_read_database, "corvo/model/job.py", 'x = """\\nCREATE TABLE jobs (id)"""'),
]
ALLOWED = [
    (only_the_door_gives_a_job_its_state, STATE_WRITER, "job.state = goal"),
    (only_the_door_gives_a_job_its_state, "shards/raft/core.py", "self.state = FOLLOWER"),
    (only_the_door_gives_a_job_its_state, "corvo/ops/jobs/ack.py", "if job.state == 2: pass"),
    (only_keys_knows_the_bytes_of_keys, KEY_WRITER, 'JOBS = b"j|"'),
    (only_keys_knows_the_bytes_of_keys, "shards/feed.py", 'x = b"\\0" + b"abc" + b"|"'),
    (sql_lives_beside_the_read_database, "gateway/mirror/rows.py", '"SELECT id FROM jobs"'),
    (sql_lives_beside_the_read_database, "gateway/app.py", '"""Prose may SELECT what it likes FROM anywhere."""'),
    (sql_lives_beside_the_read_database, "gateway/app.py", 'x = "select a job from the list"'),
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


def test_the_one_place_of_each_thing_exists_and_holds_it() -> None:
    """A rule with an exempt file that moved would exempt nothing and guard nothing."""
    texts = {module.path: module.text for module in modules()}
    assert "job.state = goal" in texts[STATE_WRITER]
    assert 'b"j|"' in texts[KEY_WRITER]
