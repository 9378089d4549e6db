"""Kill random processes of a server under load, then check that every promise was kept.

    python -m chaos.kill_shards                          its own server, in a temporary directory
    python -m chaos.kill_shards --kills 100 --seed 7     longer; the same seed kills in the same order
    python -m chaos.kill_shards --data-dir data          a server that already runs on this machine
    python -m chaos.kill_shards --roles shard,mirror     which processes to kill

Exit code 0: every promise kept. 1: violations, listed. The load uses queues named chaos.* and leaves its jobs behind.
"""

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from chaos import checkers
from chaos.node import Node, wait_until
from chaos.state import Held, held_by_shards, rows_of, statuses
from chaos.workload import Workload

ROLES = ("shard", "gateway", "mirror")
JOBS_BETWEEN_KILLS = 10


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.kill_shards", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="data directory of a running server; default: start one")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--roles", default=",".join(ROLES))
    parser.add_argument("--pause", type=float, default=1.5, help="longest pause between two kills, in seconds")
    options = parser.parse_args()
    roles = options.roles.split(",")
    if unknown := set(roles) - set(ROLES):
        parser.error(f"unknown role {', '.join(sorted(unknown))}; choose from {', '.join(ROLES)}")
    print(f"seed {options.seed}", flush=True)
    if options.data_dir is not None:
        return report(run(Node.attach(options.data_dir.resolve()), roles, options.kills, options.seed, options.pause))
    with tempfile.TemporaryDirectory(prefix="corvo-chaos-") as folder:
        node = Node.start(Path(folder))
        try:
            return report(run(node, roles, options.kills, options.seed, options.pause))
        finally:
            node.stop()


def _is_back(node: Node, role: str, killed: int) -> bool:
    return node.pid_of(role) not in (None, killed)


def _has_completed(workload: Workload, jobs: int) -> bool:
    return workload.counts()[1] >= jobs


def run(node: Node, roles: list[str], kills: int, seed: int, pause_s: float) -> list[str]:
    """Kills processes under load. Returns the violations of the promises."""
    dice = random.Random(seed)
    queues = [f"chaos.{number}" for number in range(8)]
    workload = Workload([node.url], queues, seed=seed)
    started = time.monotonic()
    workload.start()
    wait_until(lambda: workload.counts()[1] > 20, "the load to flow", 30.0)
    for number in range(kills):
        role = dice.choice([process.role for process in node.processes() if process.role.split("-")[0] in roles])
        pid = node.kill(role)
        back_s = wait_until(partial(_is_back, node, role, pid), f"{role} to be back", 10.0)
        enqueued, acked = workload.counts()
        print(
            f"kill {number + 1}/{kills}: {role} (back after {back_s * 1000:.0f} ms), "
            f"{enqueued} jobs acknowledged, {acked} completed",
            flush=True,
        )
        # Killing an idle process proves nothing: jobs must complete again before the next kill.
        wait_until(partial(_has_completed, workload, acked + JOBS_BETWEEN_KILLS), "the load to flow again", 60.0)
        time.sleep(dice.uniform(0, pause_s))  # a random time, so that faults are not tied to an event
    workload.stop_producing()
    wait_until(workload.is_drained, "every acknowledged job to complete", 90.0)
    workload.stop()
    seconds = time.monotonic() - started
    enqueued, _ = workload.counts()
    history = workload.history
    print(
        f"{enqueued} jobs in {seconds:.0f} s; refusals {dict(history.refusals)}, broken calls {history.broken_calls}",
        flush=True,
    )
    held = settled(node)
    faults = checkers.lost_jobs(history, held)
    faults += checkers.completed_twice(history, held)
    faults += checkers.reused_leases(history)
    faults += checkers.wrong_counts(held)
    return faults + unlike_rows(node, held)


def settled(node: Node) -> Held:
    """The state of the shards once their last changes are on disk and in read.db."""
    shards = node.settings.shards

    def is_quiet() -> bool:
        return all(status.applied_index == status.mirror_cursor for status in statuses(node.data_dir, shards))

    wait_until(is_quiet, "the mirror to have seen everything", 30.0)
    return held_by_shards(node.data_dir, shards)


def unlike_rows(node: Node, held: Held) -> list[str]:
    tables = ("jobs", "queues", "job_errors", "workers", "batches", "schedules", "queue_minutes")
    rows = {table: rows_of(node.data_dir, f"SELECT * FROM {table}") for table in tables}
    return [
        *checkers.misplaced_jobs(held, rows["jobs"]),
        *checkers.unlike_rows(held, rows["jobs"], rows["queues"]),
        *checkers.unlike_errors(held, rows["job_errors"]),
        *checkers.unlike_minutes(held, rows["queue_minutes"]),
        *checkers.unlike_workers(held, rows["workers"]),
        *checkers.unlike_batches(held, rows["batches"]),
        *checkers.unlike_schedules(held, rows["schedules"]),
    ]


def report(faults: list[str]) -> int:
    for fault in faults[:50]:
        print(f"VIOLATION: {fault}")
    if faults:
        print(f"{len(faults)} violations")
        return 1
    print("every promise was kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
