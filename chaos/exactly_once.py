"""Batches, chains and schedules over all shards while processes are killed: every effect must happen exactly once.

    python -m chaos.exactly_once                              2,000 batches of 5 jobs, chains of 5 steps, cron every
                                                              second, for three minutes with a kill each second
    python -m chaos.exactly_once --seconds 20 --batches 100   shorter
    python -m chaos.exactly_once --seed 7                     the same random choices

A request that breaks before its answer is not repeated, but the server may have accepted it. Its callback or steps then
come unexpectedly, and must not come twice either. When everything expected has come, workers go on until nothing new
comes for a while, to catch late duplicates.

Exit code 0: every callback, step and slot came once. 1: violations, listed.
"""

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from chaos.kill_shards import report
from chaos.node import Node, wait_until
from corvo.model.timestamps import parse_rfc3339

MEMBERS = 5
STEPS = 5
WORKERS = 3
FETCH = 50
ONE_SECOND_NS = 1_000_000_000
LEASE_S = 5.0
DRAIN_S = 120.0
QUIET_S = LEASE_S + 3.0  # a job whose worker was lost comes again within this
QUIET_S_MAX = 60.0
LOOK_S = 0.1
REPEAT_S = 0.05

QUEUES = [f"once.work.{number}" for number in range(8)]
CALLBACKS = [f"once.callback.{number}" for number in range(4)]
STEP_QUEUES = [f"once.step.{number}" for number in range(STEPS)]
CRON_QUEUE = "once.cron"


class Ledger:
    """What the server acknowledged, and what arrived. Written by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.batches: set[int] = set()  # acknowledged
        self.chains: set[int] = set()
        self.callbacks: dict[int, set[str]] = defaultdict(set)  # batch → ids of its callback jobs
        self.counts: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.steps: dict[tuple[int, int], set[str]] = defaultdict(set)  # chain, step → ids
        self.slots: dict[str, set[str]] = defaultdict(set)  # slot → ids

    def promise(self, kept: set[int], number: int) -> None:
        with self._lock:
            kept.add(number)

    def note(self, job: dict[str, Any]) -> None:
        queue, payload, job_id = job["queue"], job["payload"], job["job_id"]
        with self._lock:
            if queue in CALLBACKS:
                if job_id not in self.callbacks[payload["number"]]:
                    self.counts[payload["number"]].append(payload["batch"])
                self.callbacks[payload["number"]].add(job_id)
            elif queue in STEP_QUEUES:
                self.steps[payload["chain"], STEP_QUEUES.index(queue)].add(job_id)
            elif queue == CRON_QUEUE:
                self.slots[job["tags"]["slot"]].add(job_id)

    def is_complete(self) -> bool:
        with self._lock:
            return all(number in self.callbacks for number in self.batches) and all(
                (number, STEPS - 1) in self.steps for number in self.chains
            )

    def seen(self) -> int:
        """The number of distinct jobs that have come."""
        with self._lock:
            return sum(len(ids) for came in (self.callbacks, self.steps, self.slots) for ids in came.values())

    def faults(self) -> list[str]:
        found = [f"batch {number} never called back" for number in self.batches if number not in self.callbacks]
        found += [
            f"batch {number} called back {len(ids)} times: {', '.join(sorted(ids))}"
            for number, ids in self.callbacks.items()
            if len(ids) > 1
        ]
        for number, told in self.counts.items():
            found += [
                f"batch {number} counted {counts}"
                for counts in told
                if counts["total"] != MEMBERS or counts["completed"] != MEMBERS
            ]
        found += [
            f"chain {number} never came to step {step}"
            for number in self.chains
            for step in range(STEPS)
            if (number, step) not in self.steps
        ]
        found += [
            f"step {step} of chain {n} was made {len(i)} times" for (n, step), i in self.steps.items() if len(i) > 1
        ]
        found += [f"slot {slot} fired {len(ids)} times" for slot, ids in self.slots.items() if len(ids) > 1]
        return found


def drain(
    ledger: Ledger,
    drain_s: float = DRAIN_S,
    quiet_s: float = QUIET_S,
    quiet_s_max: float = QUIET_S_MAX,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Waits until everything expected has come, and then nothing new for `quiet_s`. Returns a fault if it did not
    become quiet in time; the ledger reports what never came."""
    began = clock()
    while not ledger.is_complete() and clock() - began < drain_s:
        sleep(LOOK_S)
    complete, changed, seen = clock(), clock(), ledger.seen()
    while clock() - changed < quiet_s:
        if clock() - complete > quiet_s_max:
            return [f"new jobs still came {quiet_s_max:g} s after everything expected had come"]
        sleep(LOOK_S)
        if ledger.seen() != seen:
            changed, seen = clock(), ledger.seen()
    return []


class Load:
    def __init__(self, url: str, batches: int, chains: int, seconds: float, seed: int) -> None:
        self.ledger = Ledger()
        self._url = f"{url}/api/v1"
        self._stop_working = threading.Event()
        self._stop_producing = threading.Event()
        dice = random.Random(seed)
        self._producers = [
            threading.Thread(
                target=self._produce, args=(self._make_batch, batches, seconds, random.Random(dice.random()))
            ),
            threading.Thread(
                target=self._produce, args=(self._make_chain, chains, seconds, random.Random(dice.random()))
            ),
        ]
        self._workers = [threading.Thread(target=self._work, args=(number,)) for number in range(WORKERS)]

    def start(self) -> None:
        self._until_answered("POST", "/schedules", self._schedule())
        for thread in [*self._producers, *self._workers]:
            thread.start()

    def finish(self) -> list[str]:
        """Waits until everything expected has come and nothing else does, or the time is over. Returns the faults."""
        for thread in self._producers:
            thread.join()
        self._until_answered("POST", f"/schedules/{self._schedule_id}/pause", None)
        try:
            return drain(self.ledger)
        finally:
            self.stop()

    def stop(self) -> None:
        self._stop_producing.set()
        self._stop_working.set()
        for thread in [*self._producers, *self._workers]:
            if thread.ident is not None:
                thread.join(60.0)

    def _schedule(self) -> dict[str, Any]:
        return {"name": "chaos-once", "queue": CRON_QUEUE, "cron": "@every 1s", "catch_up": "all", "catch_up_max": 1000}

    def _until_answered(self, method: str, path: str, body: Any) -> None:
        def is_answered() -> bool:
            try:
                answer = httpx.request(method, self._url + path, json=body, timeout=10.0)
            except httpx.HTTPError:
                return False
            if answer.status_code == 201:
                self._schedule_id = answer.json()["id"]
            assert answer.status_code < 500 or answer.status_code in (503, 504), answer.text
            assert answer.status_code < 400 or answer.status_code in (429, 503, 504), answer.text
            return answer.status_code < 300

        wait_until(is_answered, f"{method} {path} to be answered", 60.0)

    def _produce(self, make: Any, count: int, seconds: float, dice: random.Random) -> None:
        """Sends requests until `count` are acknowledged, each with its own number. A request whose answer was lost may
        have taken effect, so it is not repeated."""
        started = time.monotonic()
        with httpx.Client(timeout=15.0) as client:
            for number in itertools.count():
                path, body, kept = make(number, dice)
                try:
                    if client.post(self._url + path, json=body).status_code == 201:
                        self.ledger.promise(kept, number)
                except httpx.HTTPError:
                    self._stop_producing.wait(REPEAT_S)
                if len(kept) >= count:
                    return
                if self._stop_producing.wait(max(started + seconds * len(kept) / count - time.monotonic(), 0)):
                    return

    def _make_batch(self, number: int, dice: random.Random) -> tuple[str, Any, set[int]]:
        jobs = [{"queue": dice.choice(QUEUES), "max_retries": 50, "retry_backoff": "none"} for _ in range(MEMBERS)]
        callback = {"callback_queue": dice.choice(CALLBACKS), "callback_payload": {"number": number}}
        return "/enqueue/batch", {"jobs": jobs, "batch": callback}, self.ledger.batches

    def _make_chain(self, number: int, dice: random.Random) -> tuple[str, Any, set[int]]:
        steps = [{"queue": queue, "payload": {"chain": number}} for queue in STEP_QUEUES]
        body = {
            "queue": STEP_QUEUES[0],
            "payload": {"chain": number},
            "max_retries": 50,
            "retry_backoff": "none",
            "chain": {"steps": steps},
        }
        return "/enqueue", body, self.ledger.chains

    def _work(self, number: int) -> None:
        queues = [*QUEUES, *CALLBACKS, *STEP_QUEUES, CRON_QUEUE]
        body = {
            "queues": queues,
            "worker_id": f"once-{number}",
            "timeout": 1,
            "lease_duration": LEASE_S,
            "count": FETCH,
        }
        with httpx.Client(timeout=15.0) as client:
            while not self._stop_working.is_set():
                try:
                    answer = client.post(f"{self._url}/fetch/batch", json=body)
                    jobs = answer.json()["jobs"] if answer.status_code == 200 else []
                    for job in jobs:
                        self.ledger.note(job)
                    self._ack(client, jobs)
                except httpx.HTTPError:
                    self._stop_working.wait(REPEAT_S)

    def _ack(self, client: httpx.Client, jobs: list[dict[str, Any]]) -> None:
        """Repeats the ack until it is answered: the lease token makes that safe."""
        acks = [{"job_id": job["job_id"], "lease_token": job["lease_token"], "result": {"ok": True}} for job in jobs]
        while acks and not self._stop_working.is_set():
            try:
                if client.post(f"{self._url}/ack/batch", json={"acks": acks}).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            self._stop_working.wait(REPEAT_S)


def run(node: Node, batches: int, chains: int, seconds: float, seed: int, pause_s: float = 1.0) -> list[str]:
    dice = random.Random(seed)
    load = Load(node.url, batches, chains, seconds, seed)
    load.start()
    ends = time.monotonic() + seconds
    kills = 0
    try:
        while time.monotonic() < ends:
            role = dice.choice([process.role for process in node.processes()])
            node.kill(role)
            kills += 1
            ledger = load.ledger
            print(
                f"kill {kills}: {role}; {len(ledger.batches)} batches, {len(ledger.chains)} chains acknowledged, "
                f"{len(ledger.callbacks)} callbacks, {len(ledger.slots)} slots",
                flush=True,
            )
            time.sleep(pause_s)  # the interval between faults
        faults = load.finish()
    finally:
        load.stop()
    print(summary(load.ledger, kills), flush=True)
    return faults + load.ledger.faults() + missing_slots(sorted(load.ledger.slots))


def summary(ledger: Ledger, kills: int) -> str:
    """More callbacks than batches are not duplicates: a batch is counted when it is acknowledged."""
    broken = "for requests that broke before their answer and had reached the server"
    callbacks = len(ledger.callbacks.keys() - ledger.batches)
    steps = sum(chain not in ledger.chains for chain, _ in ledger.steps)
    of_callbacks = f" ({callbacks} {broken})" if callbacks else ""
    of_steps = f" ({steps} {'for such requests' if callbacks else broken})" if steps else ""
    return (
        f"{kills} kills; {len(ledger.batches)} batches and {len(ledger.callbacks)} callbacks{of_callbacks},"
        f" {len(ledger.chains)} chains and {len(ledger.steps)} steps{of_steps}, {len(ledger.slots)} slots"
    )


def missing_slots(slots: list[str]) -> list[str]:
    """With the catch-up policy `all`, no second between the first slot and the last may be missing."""
    moments = [parse_rfc3339(slot) for slot in slots]
    return [
        f"no slot between {slots[number]} and {slots[number + 1]}"
        for number in range(len(moments) - 1)
        if moments[number + 1] - moments[number] != ONE_SECOND_NS
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.exactly_once", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=2_000)
    parser.add_argument("--chains", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="corvo-chaos-") as folder:
        node = Node.start(Path(folder))
        try:
            return report(run(node, options.batches, options.chains, options.seconds, options.seed))
        finally:
            node.stop()


if __name__ == "__main__":
    sys.exit(main())
