"""Deliberate bugs, one for each trap that the simulator must not overlook (reference/raft.md, section 3).

Each is a context manager that replaces something of `shards.raft`, of the machine or of the simulated host, and puts
it back. None lives in production code. The hunt runs seeds under each until one fails:

    python -m tests.simulation.mutants [--seeds 2000] [--jobs 2] [name ...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager

from tests.simulation import mutants_of_hosts, mutants_of_leaders, mutants_of_logs
from tests.simulation.plan import make_plan
from tests.simulation.run import run_plan

Mutant = Callable[[], AbstractContextManager[None]]
FAMILIES = (mutants_of_logs, mutants_of_leaders, mutants_of_hosts)
MUTANTS: dict[str, Mutant] = {
    name: mutant for family in FAMILIES for name, mutant in vars(family).items() if name.startswith("trap_")
}


def first_catch(name: str, seeds: range) -> tuple[int, str] | None:
    """The first of these seeds that fails under the mutant, and how."""
    with MUTANTS[name]():
        for seed in seeds:
            failure, _ = run_plan(make_plan(seed))
            if failure is not None:
                return seed, failure
    return None


def hunt(name: str, seeds_max: int) -> tuple[str, int, str]:
    caught = first_catch(name, range(seeds_max))
    return (name, -1, "not caught") if caught is None else (name, caught[0] + 1, caught[1])


def main() -> int:
    parser = argparse.ArgumentParser(description="Prove that the simulator bites.")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    names = asked.names or list(MUTANTS)
    survivors = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        hunts = [pool.submit(hunt, name, asked.seeds) for name in names]
        for finished in as_completed(hunts):
            name, needed, failure = finished.result()
            print(f"{needed if needed > 0 else 'survived':>8}  {name}  {failure[:90]}", flush=True)
            if needed < 0:
                survivors.append(name)
    print(f"{len(names) - len(survivors)} of {len(names)} mutants caught within {asked.seeds} seeds")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
