"""A real server of three shards and the plain world of `tests/support/world.py` live one life together, step by step,
while shards are killed between the steps and in the middle of what follows from them.

Nothing here depends on the clock: leases are long, delays longer. After each step the test waits until everybody's
letters have arrived; then jobs and batches are what the world says, and in the end events and counters as well.
"""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaos.kill_shards import settled, unlike_rows
from chaos.node import Node, wait_until
from corvo.model.lifecycle import STATE_NAMES
from corvo.model.sharding import shard_of_queue
from corvo.rules.job_creation import derived_id
from tests.support.shards import queue_on
from tests.support.world import Chain, Life, New, Step, World

pytestmark = pytest.mark.system

SHARDS = 3
STEPS = int(os.environ.get("WORLD_STEPS", "60"))
QUEUES = [*(queue_on(shard, SHARDS, "world") for shard in range(SHARDS)), queue_on(0, SHARDS, "other")]
KEYS = ("unique", "key")
CONDITIONS = ("plain", "priority", "wait", "wait", "delay", "chain", "chain", "chain")
OUTCOMES = ("completed", "dead", "cancelled", "deleted")


@pytest.fixture
def three_shards() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as path:
        node = Node.start(Path(path) / "data", "--shards", str(SHARDS))
        yield node
        node.stop()


@pytest.mark.parametrize("seed", range(int(os.environ.get("WALKS", "1"))))
def test_a_life_under_kills_is_the_life_of_the_world(three_shards: Node, seed: int) -> None:
    life = Together(three_shards, random.Random(seed))

    for number in range(STEPS):
        life.step(number)

    assert life.kills >= STEPS // 10
    assert {what for _, what, _, _ in life.world.events} >= {"completed", "moved"}, "the walk must get somewhere"
    assert life.events_seen() == life.world.events
    assert life.counters_seen() == life.counters_expected()
    wait_until(
        lambda: not unlike_rows(three_shards, settled(three_shards)), "read.db to hold what the shards hold", 20.0
    )


class Together:
    def __init__(self, node: Node, dice: random.Random) -> None:
        self.node = node
        self.dice = dice
        self.world = World(SHARDS, lambda queue: shard_of_queue(queue, SHARDS), derived_id, 1_000)
        self.http = httpx.Client(base_url=f"{node.url}/api/v1", timeout=40.0)
        self.strangers = 0
        self.kills = 0
        self.story: list[str] = []

    def step(self, number: int) -> None:
        deeds = {
            self.enqueue: 10 if number > 8 else 60,
            self.enqueue_batch: 4,
            self.fetch: 10,
            self.ack: 8,
            self.fail: 4,
            self.order: 14,
            self.control: 3,
        }
        if self.dice.random() < 0.1:
            self.kill()  # the next request meets a shard that is not there
        self.dice.choices(list(deeds), list(deeds.values()))[0]()
        if self.dice.random() < 0.2:
            self.kill()  # what follows from the last one is still under way
        self.settle()
        try:
            wait_until(lambda: self.seen() == self.expected(), "the server to be as the world", 30.0)
        except TimeoutError:
            raise AssertionError(self.difference()) from None

    def kill(self) -> None:
        self.node.kill(f"shard-{self.dice.randrange(SHARDS)}")
        self.kills += 1
        self.story.append("kill")

    # Saying the same to both

    def post(self, path: str, body: dict[str, Any] | None = None, method: str = "POST") -> Any:
        """The answer, or the code of the refusal."""
        response = self.http.request(method, path, json=body)
        self.story.append(f"{method} {path} {body} → {response.status_code} {response.text[:300]}")
        answer = response.json() if response.content else None
        return answer["code"] if response.status_code >= 400 else answer

    def compare(self, answer: Any, expected: Any) -> None:
        """Only refusals are words on both sides."""
        is_refused = isinstance(expected, str)
        assert (answer == expected) if is_refused else not isinstance(answer, str), (expected, *self.story[-3:])

    def settle(self) -> None:
        """All letters of the world arrive."""
        ways = [(source, target) for source in range(SHARDS) for target in range(SHARDS) if source != target]
        while any(self.world.letters.get(way) for way in ways):
            for way in ways:
                self.world.deliver(*way, 1)
                self.world.confirm(*way)

    def pick(self, *states: str) -> Life | None:
        jobs = [job for job in self.world.jobs.values() if job.state in states] or list(self.world.jobs.values())
        return self.dice.choice(jobs) if jobs else None

    # What is said

    def new(self, kinds: tuple[str, ...]) -> tuple[New, dict[str, Any]]:
        """As the world knows it, and as the server is asked for it; it has no name yet."""
        choose = self.dice.choice
        new = New("", choose(QUEUES), {"n": self.dice.randrange(1_000)}, max_retries=choose((1, 2)))
        body: dict[str, Any] = {"queue": new.queue, "payload": new.payload, "max_retries": new.max_retries}
        match choose(kinds):
            case "priority":
                new.priority = body["priority"] = "high"
            case "unique":
                new.unique_key = body["unique_key"] = choose("kl")
                new.unique_until = body["unique_until"] = choose(("done", "period", "start"))
            case "key":
                new.idempotency_key = body["idempotency_key"] = choose("mn")
            case "wait" if self.world.jobs:
                names = list(dict.fromkeys(self.dice.choices(list(self.world.jobs), k=2)))
                new.waits_for = body["depends_on"] = names
                new.if_lost = body["on_dependency_failure"] = choose(("fail", "cancel", "run"))
            case "delay":
                new.scheduled_at, body["delay"] = self.world.now + 1, "2h"
            case "chain":
                new.chain = self.chain(new.queue)
                body["chain"] = {
                    "steps": [_body(step) for step in new.chain.steps],
                    "on_failure": _body(new.chain.on_failure),
                    "on_exit": _body(new.chain.on_exit),
                }
        return new, body

    def chain(self, queue: str) -> Chain:
        steps = [Step(queue), *(self.a_step() for _ in range(self.dice.choice((0, 1, 2))))]
        return Chain("", steps, self.dice.choice((None, self.a_step())), self.dice.choice((None, self.a_step())))

    def a_step(self) -> Step:
        return Step(self.dice.choice(QUEUES), self.dice.choice(({}, {"own": 1}, [1, 2])))

    def christen(self, new: New, name: str) -> None:
        """The server's answer names the job; where another one stands for it, it gets a name that nobody else has."""
        if name in self.world.jobs:
            self.strangers += 1
            name = f"s00_job_{self.strangers:026d}"
        new.id = name
        if new.chain is not None:
            new.chain.id = f"chn_{name[8:]}"

    def enqueue(self) -> None:
        new, body = self.new((*CONDITIONS, *KEYS))
        opened = [name for name, batch in self.world.batches.items() if not batch.sealed]
        if opened and self.dice.random() < 0.5:
            batch = self.dice.choice(opened)
            answer = self.post("/enqueue", {**body, "batch_id": batch})
            self.christen(new, answer["job_id"])
            self.world.ask(int(batch[1:3]), "add", batch, False, new)
            return
        answer = self.post("/enqueue", body)
        self.christen(new, answer["job_id"])
        [expected] = self.world.ask(shard_of_queue(new.queue, SHARDS), "enqueue", new)
        if isinstance(expected, tuple):
            assert (answer["unique_existing"], answer["job_id"]) == (True, expected[1])
        else:
            assert (answer["status"], answer["unique_existing"]) == (expected, False)

    def enqueue_batch(self) -> None:
        """A sealed one with its jobs, or an open one without, or the end of an open one."""
        steps = {name: self.a_step() for name in ("on_complete", "on_success", "on_failure")}
        spec = {name: _body(step) for name, step in steps.items()}
        opened = [name for name, batch in self.world.batches.items() if not batch.sealed]
        if opened:
            batch = self.dice.choice(opened)
            self.compare(self.post(f"/batches/{batch}/seal"), self.world.ask(int(batch[1:3]), "seal", batch))
        elif self.dice.random() < 0.5:
            batch = self.post("/batch", spec)["batch_id"]
            self.world.ask(int(batch[1:3]), "open", batch, steps, False)
        else:
            pairs = [self.new(CONDITIONS) for _ in range(3)]
            answer = self.post("/enqueue/batch", {"jobs": [body for _, body in pairs], "batch": spec})
            batch = answer["batch_id"]
            for (new, _), name in zip(pairs, answer["job_ids"], strict=True):
                self.christen(new, name)
            self.world.ask(int(batch[1:3]), "open", batch, steps, True, *(new for new, _ in pairs))

    def fetch(self) -> None:
        """The world learns which job it was: in what order letters of several shards arrive is nobody's promise."""
        full = [queue for queue in QUEUES if self.world.pending(queue)]
        queue = self.dice.choice(full if full and self.dice.random() < 0.8 else QUEUES)
        answer = self.post("/fetch/batch", {"queues": [queue], "worker_id": "w1", "timeout": 0, "count": 1})
        shard = shard_of_queue(queue, SHARDS)
        waiting = self.world.pending(queue)
        if answer["jobs"]:
            [claimed] = answer["jobs"]
            taken = self.world.jobs[claimed["job_id"]]
            assert taken in waiting and taken.priority == waiting[0].priority, self.story[-1]
            taken.filed = -1
            expected = self.world.ask(shard, "fetch", [queue], "w1", 1, 1, 60_000)
            assert expected == [(claimed["job_id"], claimed["attempt"], claimed["lease_token"])]
        else:
            assert self.world.ask(shard, "fetch", [queue], "w1", 1, 1, 60_000) == [], self.story[-1]

    def ack(self) -> None:
        job = self.pick("active")
        if job is not None:
            result, exits = self.dice.choice((None, {"r": 1})), self.dice.random() < 0.2
            body = {"result": result, "step_status": "exit" if exits else "continue"}
            if job.token:
                body["lease_token"] = job.token
            [expected] = self.world.ask(job.shard or 0, "ack", (job.id, job.token, result, exits))
            self.compare(self.post(f"/ack/{job.id}", body), expected)

    def fail(self) -> None:
        job = self.pick("active")
        if job is not None:
            how = self.dice.choice(("final", "after", "snooze"))
            body = {
                "error": "boom",
                **{"final": {"retry": False}, "after": {"retry_after": "1h"}, "snooze": {"snooze": "1h"}}[how],
            }
            if job.token:
                body["lease_token"] = job.token
            expected = self.world.ask(job.shard or 0, "fail", job.id, job.token, "boom", how, 3_600_000)
            self.compare(self.post(f"/fail/{job.id}", body), expected)

    def order(self) -> None:
        """Somebody does something to a job."""
        queue, priority = self.dice.choice(QUEUES), self.dice.choice(("normal", "high"))
        orders: dict[str, tuple[tuple[str, ...], dict[str, Any] | None, tuple[Any, ...]]] = {
            "move": (("pending", "scheduled", "held", "dead"), {"queue": queue}, (queue,)),
            "priority": (("pending", "scheduled"), {"priority": priority}, (priority,)),
            "cancel": (("pending", "active"), {"grace": 0}, (0,)),
            "hold": (("pending", "active", "scheduled"), {}, ()),
            "approve": (("held",), None, ()),
            "reject": (("held",), {}, ()),
            "retry": (("dead", "completed", "cancelled", "scheduled"), None, ()),
            "requeue": (("dead",), None, ()),
            "delete": (("pending", "active", "dead", "scheduled"), None, ()),
        }
        what = self.dice.choice([*orders, "cancel", "move", "move"])
        states, body, details = orders[what]
        job = self.pick(*states)
        if job is not None:
            expected = self.world.ask(job.shard or 0, what, job.id, *details)
            path, method = (f"/jobs/{job.id}", "DELETE") if what == "delete" else (f"/jobs/{job.id}/{what}", "POST")
            self.compare(self.post(path, body, method), expected)

    def control(self) -> None:
        """Somebody does something to a queue."""
        queue = self.dice.choice(QUEUES)
        shard = shard_of_queue(queue, SHARDS)
        what = self.dice.choice(("pause", "resume", "resume", "clear", "concurrency"))
        if what == "concurrency":
            limit = self.dice.choice((1, 2))
            self.compare(
                self.post(f"/queues/{queue}/concurrency", {"max": limit}), self.world.ask(shard, what, queue, limit)
            )
        else:
            self.compare(self.post(f"/queues/{queue}/{what}"), self.world.ask(shard, what, queue))

    # What both show

    def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        response = self.http.post("/jobs/search", json={"limit": 1000, "consistent": True})
        if response.status_code != 200:
            return found  # a shard is on its way back
        for job in response.json()["jobs"]:
            fields = ("queue", "state", "attempt", "payload", "batch_id", "chain_step", "parent_id")
            found[job["id"]] = tuple(job.get(name) for name in fields)
        for name in self.world.batches:
            batch = self.http.get(f"/batches/{name}").json()
            found[name] = (batch.get("state"), batch.get("total"), *(batch.get(outcome) for outcome in OUTCOMES))
        return found

    def expected(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for job in self.world.jobs.values():
            new = job.new
            step = None if new.chain is None else new.step
            found[job.id] = (
                job.queue,
                job.state,
                job.attempt,
                new.payload,
                new.batch or None,
                step,
                new.parent or None,
            )
        for name, batch in self.world.batches.items():
            state = "completed" if batch.finished else "sealed" if batch.sealed else "open"
            found[name] = (state, batch.total, *(batch.ended[outcome] for outcome in OUTCOMES))
        return found

    def events_seen(self) -> Counter[tuple[int, str, str, str]]:
        page = self.http.get("/cluster/events", params={"limit": 1000}).json()
        assert not page.get("has_more") and not page.get("missed")
        return Counter(
            (event["shard"], event["type"], event.get("job_id", ""), event.get("queue", "")) for event in page["events"]
        )

    def counters_seen(self) -> dict[str, tuple[int, ...]]:
        rows = self.http.get("/queues", params={"consistent": True}).json()
        return {row["name"]: tuple(row[name] for name in (*STATE_NAMES, "enqueued", "failed")) for row in rows}

    def counters_expected(self) -> dict[str, tuple[int, ...]]:
        states = Counter((job.queue, job.state) for job in self.world.jobs.values())
        return {
            queue: (*(states[queue, state] for state in STATE_NAMES), line.enqueued, line.failed)
            for queue, line in self.world.lines.items()
        }

    def difference(self) -> str:
        seen, expected = self.seen(), self.expected()
        lines = [
            f"{name}: server {seen.get(name)}, world {expected.get(name)}"
            for name in sorted(seen.keys() | expected.keys())
            if seen.get(name) != expected.get(name)
        ]
        return "\n".join([*lines, "after", *self.story[-12:]])


def _body(step: Step | None) -> dict[str, Any] | None:
    return None if step is None else {"queue": step.queue, "payload": step.payload}
