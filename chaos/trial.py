"""The shared part of the cluster scripts: a cluster under load, one fault per round, then all checks.

A script is a function that injects one fault and describes it in a few words. The rest is here: flags, load, progress,
checks and verdict.
"""

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from chaos import checkers
from chaos.cluster import Cluster
from chaos.kill_shards import report, settled, unlike_rows
from chaos.node import wait_until
from chaos.workload import History, Workload

FLOW_S = 60.0
DRAIN_S = 90.0
JOBS_BETWEEN_HARM = 5  # on each shard
PACE_S = 0.02

Harm = Callable[["Trial"], str]


class Trial:
    """`patience_s`: how long a client retries a refused request before it counts as failed."""

    def __init__(self, cluster: Cluster, seed: int = 0, pace_s: float = PACE_S, patience_s: float = 15.0) -> None:
        self.cluster = cluster
        self.dice = random.Random(seed)
        queues = [f"chaos.{number}" for number in range(8)]
        self.load = Workload(cluster.urls(), queues, seed=seed, pace_s=pace_s, patience_s=patience_s)

    def begin(self) -> None:
        self.load.start()
        self.await_flow()

    def await_flow(self) -> float:
        """Waits until every shard has completed more jobs. A fault in an idle cluster proves nothing."""
        before = self.load.acked_by_shard()

        def flows() -> bool:
            now = self.load.acked_by_shard()
            return all(now[shard] >= before[shard] + JOBS_BETWEEN_HARM for shard in range(self.cluster.shards))

        return wait_until(flows, "every shard to complete jobs", FLOW_S)

    def end(self) -> list[str]:
        """Waits until every acknowledged job is completed and all replicas are equal. Returns the violations."""
        self.load.stop_producing()
        try:
            wait_until(self.load.is_drained, "every acknowledged job to complete", DRAIN_S)
        except TimeoutError as error:
            return [str(error), *(f"{job_id} was not completed" for job_id in self.load.unfinished())]
        finally:
            self.load.stop()
        self.cluster.await_alike()
        return self._violations()

    def _violations(self) -> list[str]:
        history, nodes = self.load.history, self.cluster.nodes
        faults = [f"{request} failed" for request in history.unhealed] + checkers.reused_leases(history)
        first = settled(nodes[0].server)
        for node in nodes:
            held = settled(node.server)
            found = [*checkers.lost_jobs(history, held), *checkers.completed_twice(history, held)]
            found += checkers.wrong_counts(held) + unlike_rows(node.server, held)
            found += [] if held == first else [f"its records are not those of {nodes[0]}"]
            faults += [f"{node}: {fault}" for fault in found]
        return faults


def main(description: str | None, harm: Harm, rounds: int, proxied: bool = False, patience_s: float = 15.0) -> int:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"number of rounds; default {rounds}")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the same seed makes the same choices")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--shards", type=int, default=2)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="corvo-chaos-"))
    with Cluster.start(folder, options.nodes, options.shards, proxied) as cluster:
        code = report(run(Trial(cluster, options.seed, patience_s=patience_s), harm, options.rounds))
    if code == 0:
        shutil.rmtree(folder)
    else:
        print(f"data and logs of the nodes are kept in {folder}")
    return code


def run(trial: Trial, harm: Harm, rounds: int) -> list[str]:
    """Runs the rounds under load. Returns the violations of the promises."""
    started = time.monotonic()
    try:
        faults = _hurt(trial, harm, rounds)
    except TimeoutError as error:
        faults = [str(error)]
        trial.load.stop()
    history = trial.load.history
    print(
        f"{len(history.enqueued)} jobs in {time.monotonic() - started:.0f} s; {retries(history)}",
        flush=True,
    )
    return faults


def retries(history: History) -> str:
    """How often clients retried broken or refused calls, which a restart cannot avoid."""
    broken, refused = history.broken_calls, history.refusals.total()
    if not broken and not refused:
        return "no client had to send a call again"
    codes = ", ".join(f"{code} {count}" for code, count in sorted(history.refusals.items()))
    return (
        f"clients sent {broken + refused} calls again: {broken} broke, {refused} were refused"
        f"{f' ({codes})' if codes else ''}; the longest took {history.longest_trouble_s:.1f} s"
    )


def _hurt(trial: Trial, harm: Harm, rounds: int) -> list[str]:
    trial.begin()
    for number in range(rounds):
        what = harm(trial)
        trial.await_flow()
        enqueued, acked = trial.load.counts()
        print(f"round {number + 1}/{rounds}: {what}; {enqueued} jobs acknowledged, {acked} completed", flush=True)
    return trial.end()
