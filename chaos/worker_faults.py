"""A worker under load while its gateway is killed, its shards are killed, and its network is cut.

    python -m chaos.worker_faults                      20 faults, one server
    python -m chaos.worker_faults --nodes 3            a cluster of three, whose nodes are killed, too
    python -m chaos.worker_faults --rounds 50 --seed 7

The worker is never restarted: it has to connect again by itself. Checked at the end: every job that was enqueued is
completed with its own result, no handler ran twice under one lease, every handler that ended before its lease did is
the one that counts, and the worker stops with exit code 0. Exit code 1: violations, listed.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from chaos.cluster import Cluster
from chaos.kill_shards import report
from chaos.node import Node, wait_until
from chaos.proxy import Proxies
from chaos.worker_process import Line, WorkerProcess
from corvo.client.answers import JobView
from corvo.client.bodies import BulkGetBody, EnqueueBatchBody, EnqueueBody
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable

BATCH = 20
PAUSE_S = 0.1
LEASE_S = 3.0  # jobs whose claim was lost on its way come again after it
FLOW = 60  # jobs that must be done between two faults
CUT_S = 4.0
DRAIN_S = 120.0
QUEUES = "faults"


class Target(Protocol):
    """What is hurt: a server, or a cluster."""

    urls: list[str]

    def hurt(self, dice: random.Random) -> str: ...


class OneServer:
    def __init__(self, node: Node) -> None:
        self._node = node
        self.urls = [node.url]

    def hurt(self, dice: random.Random) -> str:
        role = dice.choice(["gateway", "gateway", "shard"])
        roles = [process.role for process in self._node.processes() if process.role.startswith(role)]
        name = dice.choice(roles)
        self._node.kill(name)
        return f"killed {name}"


class ThreeNodes:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.urls = [node.url for node in cluster.nodes]

    def hurt(self, dice: random.Random) -> str:
        victim = dice.choice(self._cluster.nodes)
        if dice.random() < 0.5:
            victim.server.kill("gateway")
            return f"killed the gateway of {victim}"
        victim.kill()
        victim.launch()
        self._cluster.await_ready()
        return f"killed {victim}"


class Producer:
    """Enqueues all the time, and remembers what each job is for. A batch with an unknown outcome counts for nothing."""

    def __init__(self, urls: list[str]) -> None:
        self.wanted: dict[str, int] = {}  # job → its number
        self._urls = urls
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)

    @contextmanager
    def producing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join(60.0)

    def _produce(self) -> None:
        number = 0
        while not self._over.wait(PAUSE_S):
            url = self._urls[number % len(self._urls)]
            numbers = range(number, number + BATCH)
            kinds = [f"{QUEUES}.{'loop' if each % 2 else 'thread'}" for each in numbers]
            number += BATCH
            jobs = [EnqueueBody(queue=kind, payload={"n": n}) for n, kind in zip(numbers, kinds, strict=True)]
            try:
                with Client(url, timeout_s=5.0, deadline_s=5.0) as client:
                    made = client.enqueue_batch(EnqueueBatchBody(jobs)).job_ids
            except (Unreachable, ServerRefused):
                continue
            self.wanted.update(zip(made, numbers, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.worker_faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--nodes", type=int, default=1, choices=[1, 3])
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="corvo-chaos-") as path, ExitStack() as running:
        folder = Path(path)
        if options.nodes == 1:
            node = Node.start(folder / "data")
            running.callback(node.stop)
            return report(run(OneServer(node), folder, options.rounds, options.seed))
        cluster = running.enter_context(Cluster.start(folder, options.nodes))
        return report(run(ThreeNodes(cluster), folder, options.rounds, options.seed))


def run(target: Target, folder: Path, rounds: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    gateway = target.urls[0].removeprefix("http://")
    proxies = Proxies({"worker": "127.0.0.1:1", "gateway": gateway}, 1)
    through = f"http://{proxies.addresses_for('worker')['gateway']}"
    producer = Producer(target.urls)
    worker = WorkerProcess(folder, [through, *target.urls[1:]], QUEUES, "--lease", str(LEASE_S))
    try:
        with producer.producing():
            worker.await_done(FLOW)
            for number in range(rounds):
                if dice.random() < 0.25:
                    proxies.cut("worker", "gateway")
                    time.sleep(CUT_S)  # the fault lasts; nothing is waited for
                    proxies.heal()
                    what = f"cut the network for {CUT_S:g} s"
                else:
                    what = target.hurt(dice)
                done = worker.done()
                worker.await_done(done + FLOW)
                print(f"round {number + 1}/{rounds}: {what}; {len(producer.wanted)} enqueued, {done} done", flush=True)
        with Client(target.urls[0]) as client:
            try:
                wait_until(lambda: not _open(client, producer.wanted), "every job to complete", DRAIN_S)
            except TimeoutError as error:
                return [str(error), *(f"{job.id} is {job.state}" for job in _open(client, producer.wanted))]
            jobs = _jobs(client, list(producer.wanted))
        code, _ = worker.stop()
        faults = checked(producer.wanted, jobs, worker.lines())
        return faults + ([f"the worker ended with {code}: {worker.told()}"] if code else [])
    finally:
        worker.kill()
        proxies.close()


def checked(wanted: dict[str, int], jobs: list[JobView], lines: list[Line]) -> list[str]:
    """Pure."""
    faults = [f"{job_id} was acknowledged and is gone" for job_id in wanted.keys() - {job.id for job in jobs}]
    runs = Counter((line.job_id, line.lease_token) for line in lines if line.what == "begun")
    faults += [
        f"{job_id} ran {count} times under lease {token}" for (job_id, token), count in runs.items() if count > 1
    ]
    done = {line.job_id for line in lines if line.what == "done"}
    for job in jobs:
        if job.state != "completed":
            faults.append(f"{job.id} is {job.state}")
        elif job.result != wanted[job.id] + 1:
            faults.append(f"{job.id} has the result {job.result}, wanted {wanted[job.id] + 1}")
        elif job.id not in done:
            faults.append(f"{job.id} is completed, and no handler did it")
    return faults


def _jobs(client: Client, ids: list[str]) -> list[JobView]:
    return [
        job for first in range(0, len(ids), 500) for job in client.bulk_get(BulkGetBody(ids[first : first + 500])).jobs
    ]


def _open(client: Client, wanted: dict[str, int]) -> list[JobView]:
    try:
        return [job for job in _jobs(client, list(wanted)) if job.state != "completed"]
    except (Unreachable, ServerRefused):
        return [JobView("?", "?", "unknown", None, 0, 0, 0, "", 0, 0, "")]


if __name__ == "__main__":
    sys.exit(main())
