"""Run seeds, print what they covered, and shrink a failing one to a readable trace.

python -m tests.simulation.run --seeds 10000 [--first 0] [--jobs 2]
python -m tests.simulation.run --seed 4711            one seed with its trace, shrunk if it fails
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain

import msgspec

from tests.simulation.cluster import Cluster
from tests.simulation.network import CLEAR
from tests.simulation.plan import Line, Plan, make_plan

TOLD = (
    "events",
    "elections",
    "snapshots installed",
    "config changes",
    "crashes",
    "lost writes",
    "partitions",
    "transfers ordered",
    "pauses",
    "client retries",
    "requests repeated",
    "claims",
    "acks",
    "acks refused",
    "expires",
    "reads",
    "lease reads",
)


RUNS_TO_SHRINK = 400


class Outcome(msgspec.Struct):
    seed: int
    failure: str | None
    coverage: dict[str, int]


def run_plan(plan: Plan) -> tuple[str | None, Cluster]:
    """The failure, if there was one, in one line."""
    cluster = Cluster(plan)
    return _failure(cluster), cluster


def _failure(cluster: Cluster) -> str | None:
    try:
        cluster.run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def run_seed(seed: int) -> Outcome:
    failure, cluster = run_plan(make_plan(seed))
    return Outcome(seed, failure, dict(cluster.coverage))


def replay_command(seed: int) -> str:
    return f"python -m tests.simulation.run --seed {seed}"


# --- shrinking


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less in them, the boldest first."""
    for calm in ({"weather": CLEAR}, {"drift_ppm": 0}, {"lease_reads": False}):
        quiet = msgspec.structs.replace(plan, **calm)
        if quiet != plan:
            yield quiet
    count = len(plan.lines)
    size = count // 2
    while size >= 1:
        for start in range(0, count, size):
            rest: tuple[Line, ...] = plan.lines[:start] + plan.lines[start + size :]
            yield msgspec.structs.replace(plan, lines=rest)
        size //= 2


def shrink(plan: Plan, runs_max: int = RUNS_TO_SHRINK) -> Plan:
    """The smallest plan found in so many runs that still fails, in whatever way."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in smaller(plan):
            if runs_max == 0:
                break
            runs_max -= 1
            failure, _ = run_plan(candidate)
            if failure is not None:
                plan, is_smaller = candidate, True
                break
    return plan


def report(plan: Plan, runs_max: int = RUNS_TO_SHRINK) -> str:
    """What failed, the shrunk plan, its trace, and how to see it again."""
    first, _ = run_plan(plan)
    if first is None:
        return f"seed {plan.seed} does not fail"
    small = shrink(plan, runs_max)
    cluster = Cluster(small, is_traced=True)
    failure = _failure(cluster)
    lines = [
        f"seed {plan.seed} fails: {first}",
        f"shrunk from {len(plan.lines)} lines to {len(small.lines)}; it then fails: {failure}",
        f"{small.nodes} nodes, {small.weather}, drift {small.drift_ppm} ppm, lease reads {small.lease_reads}",
        *("  asked  " + str(line) for line in small.lines),
        *("  seen   " + text for text in cluster.trace[-80:]),
        f"again: {replay_command(plan.seed)}",
    ]
    return "\n".join(lines)


# --- many seeds


def told(coverage: Counter[str]) -> str:
    return ", ".join(f"{coverage[name]} {name}" for name in TOLD)


def summary(count: int, first: int, failed: int, started: float, coverage: Counter[str]) -> str:
    seconds = time.monotonic() - started
    return f"{count} seeds from {first} in {seconds:.0f} s, {failed} failed: {told(coverage)}"


def run_many(first: int, count: int, jobs: int) -> int:
    coverage: Counter[str] = Counter()
    failed: list[Outcome] = []
    started = time.monotonic()
    seeds = range(first, first + count)
    with ProcessPoolExecutor(jobs) as pool:
        outcomes = pool.map(run_seed, seeds, chunksize=10)
        for number, outcome in enumerate(outcomes, 1):
            coverage.update(outcome.coverage)
            if outcome.failure is not None:
                failed.append(outcome)
                print(f"seed {outcome.seed}: {outcome.failure[:300]}", flush=True)
            if number % 1000 == 0:
                print(summary(number, first, len(failed), started, coverage), flush=True)
    print(summary(count, first, len(failed), started, coverage))
    rest = sorted(set(coverage) - set(TOLD))
    print("also: " + ", ".join(f"{coverage[name]} {name}" for name in rest))
    if failed:
        print(report(make_plan(failed[0].seed)))
        print("failed: " + " ".join(str(outcome.seed) for outcome in failed[:100]))
    return 1 if failed else 0


def run_one(seed: int) -> int:
    plan = make_plan(seed)
    failure, _ = run_plan(plan)
    if failure is not None:
        print(report(plan))
        return 1
    cluster = Cluster(plan, is_traced=True)
    cluster.run()
    print("\n".join(chain(cluster.trace, [f"seed {seed} holds: {told(cluster.coverage)}"])))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Simulate whole clusters from seeds.")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int)
    asked = parser.parse_args()
    return run_one(asked.seed) if asked.seed is not None else run_many(asked.first, asked.seeds, asked.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
