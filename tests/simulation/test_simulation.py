"""Two hundred seeds of storms, and that a seed is a seed: the same again, and shrunk when it fails.

More of them: make simulate SEEDS=10000. One of them: python -m tests.simulation.run --seed 4711
"""

from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest

from tests.simulation.cluster import Cluster
from tests.simulation.mutants import MUTANTS
from tests.simulation.plan import Plan, make_plan
from tests.simulation.run import TOLD, replay_command, report, run_plan, run_seed

SEEDS = 200
CHUNK = 10
covered: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_storm_breaks_no_promise(first: int) -> None:
    for seed in range(first, first + CHUNK):
        outcome = run_seed(seed)
        covered.update(outcome.coverage)
        assert outcome.failure is None, report(make_plan(seed))


def test_the_storms_cover_what_they_are_for() -> None:
    """Runs after the seeds; alone it has nothing to judge."""
    if covered["events"] == 0:
        pytest.skip("no seed has run")
    for name in set(TOLD) - {"events"}:
        assert covered[name] >= 20, name
    for name in ("claims", "acks", "client retries", "requests repeated"):
        assert covered[name] >= 2 * SEEDS, f"histories are thin: {covered[name]} {name}"


def _digest(plan: Plan) -> tuple[object, ...]:
    cluster = Cluster(plan, is_traced=True)
    cluster.run()
    return cluster.trace, cluster.coverage, cluster.checks.hashes, cluster.events.count


@pytest.mark.parametrize("seed", [3, 14])
def test_a_seed_plays_the_same_again(seed: int) -> None:
    assert _digest(make_plan(seed)) == _digest(make_plan(seed))


def test_a_failing_seed_is_shrunk_to_a_readable_trace() -> None:
    with MUTANTS["trap_16_half_is_a_majority"]():
        text = report(make_plan(0), runs_max=40)

    assert text.startswith("seed 0 fails: Violation")
    assert text.endswith(f"again: {replay_command(0)}")
    lines = len(make_plan(0).lines)
    (kept,) = re.findall(rf"shrunk from {lines} lines to (\d+); it then fails: Violation", text)
    assert int(kept) == text.count("\n  asked  ") < lines // 4
    assert re.search(r"\n  seen +\d+ ms  \w leads term 1", text)


def test_a_plan_without_faults_and_calls_holds() -> None:
    plan = msgspec.structs.replace(make_plan(1), lines=())

    failure, cluster = run_plan(plan)

    assert failure is None
    assert cluster.coverage["elections"] == 1
