"""SIGTERM for a worker under load, a hundred times: it ends in time, and no job is lost, doubled or charged.

    python -m chaos.drain_worker                 100 trials against its own server
    python -m chaos.drain_worker --trials 10

Each trial starts a worker, lets it work on short jobs, on jobs that save their steps and on jobs that do not look
whether they should stop, and sends SIGTERM. Checked: it ends within its shutdown timeout and two seconds, with exit
code 0; every job whose handler ended is completed; every other one is handed back without using an attempt, with the
last checkpoint that its handler saved. Exit code 1: violations, listed.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from chaos.kill_shards import report
from chaos.node import Node, wait_until
from chaos.worker_process import Line, WorkerProcess
from corvo.client.answers import JobView
from corvo.client.bodies import BulkGetBody, EnqueueBatchBody, EnqueueBody
from corvo.client.http import Client

SHORT, STEPS, DEAF = 400, 4, 3
SHUTDOWN_S = 2.0
MARGIN_S = 2.0
HANDED_BACK = ("pending", "scheduled")
SETTLE_S = 20.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.drain_worker", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="corvo-chaos-") as path:
        node = Node.start(Path(path) / "data")
        try:
            return report(run(node, Path(path), options.trials))
        finally:
            node.stop()


def run(node: Node, folder: Path, trials: int) -> list[str]:
    faults: list[str] = []
    times: list[float] = []
    with Client(node.url) as client:
        for number in range(trials):
            found, seconds = trial(node, client, folder, f"drain{number}")
            faults += [f"trial {number}: {fault}" for fault in found]
            times.append(seconds)
    print(f"{trials} trials: ended in {statistics.median(times):.2f} s, at most {max(times):.2f} s", flush=True)
    return faults


def trial(node: Node, client: Client, folder: Path, queues: str) -> tuple[list[str], float]:
    jobs = [EnqueueBody(queue=f"{queues}.loop", payload={"n": n}) for n in range(SHORT // 2)]
    jobs += [EnqueueBody(queue=f"{queues}.thread", payload={"n": n}) for n in range(SHORT // 2)]
    jobs += [EnqueueBody(queue=f"{queues}.steps", payload={"count": 10_000}) for _ in range(STEPS)]
    jobs += [EnqueueBody(queue=f"{queues}.deaf", payload={"seconds": 1_000.0}) for _ in range(DEAF)]
    ids = client.enqueue_batch(EnqueueBatchBody(jobs)).job_ids
    flags = ("--shutdown-timeout", str(SHUTDOWN_S), "--concurrency", "16")
    worker = WorkerProcess(folder, [node.url], queues, *flags)
    try:
        worker.await_done(SHORT // 4)
        code, seconds = worker.stop()
    finally:
        worker.kill()

    def held() -> list[JobView]:
        return client.bulk_get(BulkGetBody(ids)).jobs

    def is_settled() -> bool:
        return all(job.state != "scheduled" for job in held())

    wait_until(is_settled, "jobs that were handed back to be pending", SETTLE_S)
    faults = checked(held(), worker.lines())
    if code:
        faults.append(f"exit code {code}: {worker.told()}")
    if seconds > SHUTDOWN_S + MARGIN_S:
        faults.append(f"it took {seconds:.1f} s to end")
    return faults, seconds


def checked(jobs: list[JobView], lines: list[Line]) -> list[str]:
    """What the server holds against what the handlers wrote. Pure."""
    done = [line.job_id for line in lines if line.what == "done"]
    saved = {line.job_id: line.number for line in lines if line.what == "step"}
    faults = [f"{job_id} ran {done.count(job_id)} times" for job_id in set(done) if done.count(job_id) > 1]
    for job in jobs:
        if job.id in done:
            if job.state != "completed":
                faults.append(f"{job.id} of {job.queue} was done and is {job.state}")
        elif job.state not in HANDED_BACK:
            faults.append(f"{job.id} of {job.queue} was not done and is {job.state}")
        elif job.attempt:
            faults.append(f"{job.id} of {job.queue} was handed back and lost an attempt")
        elif job.id in saved and job.checkpoint != {"step": saved[job.id]}:
            faults.append(f"{job.id} saved step {saved[job.id]}, and the server has {job.checkpoint}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
