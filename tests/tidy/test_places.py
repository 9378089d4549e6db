"""Things that have one place: a job's state and where it is filed, cascades, the bytes of keys, SQL."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.house import Module, Rule, caught, docstrings, dotted, modules, violations, walk

STATE_WRITER = "corvo/state/transitions.py"
KEY_WRITER = "corvo/state/keys.py"
CASCADE_RUNNERS = ("corvo/engine.py", "corvo/rules/cascades.py")
SQL_FOLDERS = ("gateway/readdb/", "gateway/mirror/", "gateway/search/")

_KEY_BYTES = re.compile(rb"(?:[a-z]{1,2}\||\0[a-z]{2,})")
# Keys and orders in which a job is filed by its state.
_FILING = re.compile(r"\bkeys\.(?:scheduled|retrying|pending|active)$|tables\.(?:due|leases|pending)\.(?:add|remove)$")
_SQL = re.compile(
    r"\b(?:SELECT\s.+\sFROM\s|INSERT\s+(?:OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s"
    r"|(?:CREATE|DROP|ALTER)\s+(?:UNIQUE\s+|VIRTUAL\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\s|PRAGMA\s+\w)",
    re.DOTALL,
)


def only_transitions_give_a_job_its_state(module: Module) -> Iterator[str]:
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


def only_transitions_file_a_job(module: Module) -> Iterator[str]:
    if module.path in (STATE_WRITER, KEY_WRITER):
        return
    for node in walk(module):
        if isinstance(node, ast.Call) and _FILING.search(dotted(node.func)):
            yield (
                f"{module.at(node)} files a job with {dotted(node.func)}:"
                " only corvo/state/transitions.py does (change, reindex, unindex, renew, postpone)"
            )


def only_the_engine_runs_operations_and_cascades(module: Module) -> Iterator[str]:
    if module.path in CASCADE_RUNNERS:
        return
    for node in walk(module):
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func).split(".")[-1]
        takes_tables = any(dotted(arg).split(".")[-1] == "tables" for arg in node.args)
        is_method = isinstance(node.func, ast.Attribute)
        if called == "run_cascades" or (called in ("apply", "run", "steps") and takes_tables and is_method):
            yield (
                f"{module.at(node)} calls {called}: only corvo/engine.py does, so that no cascade is forgotten;"
                " make the operation Compound and yield the step"
            )


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
    (only_transitions_give_a_job_its_state, "corvo/ops/jobs/ack.py", "job.state = 2"),
    (only_transitions_give_a_job_its_state, "corvo/ops/jobs/ack.py", "found.state = State.DEAD"),
    (only_transitions_give_a_job_its_state, "corvo/ops/jobs/ack.py", "a, job.state = 1, 2"),
    (only_transitions_give_a_job_its_state, "corvo/ops/jobs/ack.py", "job.state: int = 2"),
    (only_transitions_give_a_job_its_state, "corvo/ops/jobs/ack.py", "msgspec.structs.replace(job, state=2)"),
    (only_transitions_give_a_job_its_state, "corvo/ops/jobs/ack.py", "setattr(job, 'state', 2)"),
    (only_transitions_give_a_job_its_state, "shards/replica.py", "self.job.state = 2"),
    (only_transitions_file_a_job, "corvo/rules/errands/watch.py", "tables.put(keys.scheduled(a, 1, b), None)"),
    (only_transitions_file_a_job, "corvo/rules/errands/watch.py", "self.tables.due.add(1, job.id)"),
    (only_transitions_file_a_job, "corvo/ops/jobs/ack.py", "tables.leases.remove(job.id)"),
    (only_the_engine_runs_operations_and_cascades, "corvo/ops/upkeep/ring.py", "run_cascades(tables)"),
    (only_the_engine_runs_operations_and_cascades, "corvo/ops/upkeep/deliver.py", "decode(raw).run(tables)"),
    (only_the_engine_runs_operations_and_cascades, "corvo/ops/bulk/act_on_jobs.py", "Hold(1, a).apply(tables)"),
    (only_the_engine_runs_operations_and_cascades, "shards/replica.py", "operation.apply(self.tables)"),
    (only_keys_knows_the_bytes_of_keys, "shards/feed.py", 'scan(b"j|", b"j}")'),
    (only_keys_knows_the_bytes_of_keys, "shards/feed.py", 'key = b"qa|%b" % name'),
    (only_keys_knows_the_bytes_of_keys, "shards/feed.py", 'get(b"\\0applied")'),
    (sql_lives_beside_the_read_database, "gateway/app.py", 'db.execute("SELECT id FROM jobs")'),
    (sql_lives_beside_the_read_database, "gateway/app.py", 'f"INSERT OR REPLACE INTO {table} VALUES (1)"'),
    (sql_lives_beside_the_read_database, "shards/feed.py", 'x = "PRAGMA journal_mode=WAL"'),
    (sql_lives_beside_the_read_database, "corvo/model/job.py", 'x = """\\nCREATE TABLE jobs (id)"""'),
]
ALLOWED = [
    (only_transitions_give_a_job_its_state, STATE_WRITER, "job.state = goal"),
    (only_transitions_give_a_job_its_state, "shards/raft/core.py", "self.state = FOLLOWER"),
    (only_transitions_give_a_job_its_state, "corvo/ops/jobs/ack.py", "if job.state == 2: pass"),
    (only_transitions_file_a_job, STATE_WRITER, "tables.due.add(job.due_at, job.id)"),
    (only_transitions_file_a_job, "corvo/queries/queue.py", "tables.due.over(1, 2)\nkeys.scheduled_prefix(a)"),
    (only_the_engine_runs_operations_and_cascades, "corvo/engine.py", "operation.apply(tables)"),
    (only_the_engine_runs_operations_and_cascades, "corvo/ops/bulk/act_on_jobs.py", "yield Hold(1, a).apply"),
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
    assert "run_cascades(tables)" in texts[CASCADE_RUNNERS[0]]
    assert ".run(tables)" in texts[CASCADE_RUNNERS[1]]
