"""Producers and workers: they ask one thing at a time, repeat it until it is answered, and sometimes even then.

What they ask is for the lines of a plan to say; only what they claimed they settle by themselves, as workers do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from corvo.endpoint import Operation
from corvo.model.retry import Backoff
from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail
from corvo.ops.jobs.fetch import Fetch
from corvo.ops.jobs.heartbeat import Heartbeat
from tests.simulation.admission import Request
from tests.simulation.clock import MS, T
from tests.simulation.linearizability import Answer, Op
from tests.simulation.plan import Line
from tests.support.builders import ack, enqueue, fail, fetch, heartbeat, job_id, new_job

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

QUEUES = ("mail", "video")
TRIES_MAX = 14
CLIENTS = 7
SETTLED = 0.8  # share of claims that their worker settles; the others wait for a line of the plan, or expire
REPEATED = 0.2  # share of answered requests that are sent once more


class Task(msgspec.Struct):
    """A call that a client makes until it is answered or given up."""

    client: Client
    ask: Operation | str
    number: int
    call: int
    first: Task | None = None  # the one that this repeats, though it was answered
    tries: int = 0
    is_over: bool = False

    @property
    def is_repeat(self) -> bool:
        return self.first is not None


class Client(msgspec.Struct):
    name: str
    target: int = 0  # which host it asks next
    task: Task | None = None
    held: list[tuple[str, int]] = []  # jobs it has claimed, with their tokens


class Clients:
    """Workers and producers: each asks one thing at a time and repeats it until it is answered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._clients = [Client(f"client{number}") for number in range(CLIENTS)]
        self._by_name = {client.name: client for client in self._clients}
        self._count = 0
        self.jobs: list[str] = []
        self.answers: list[Answer] = []
        self.tasks: list[Task] = []
        self.enqueued: dict[str, int] = {}  # job → when its enqueueing was acknowledged
        self.acked: dict[str, int] = {}
        self._claims: set[tuple[str, int]] = set()

    @property
    def is_busy(self) -> bool:
        return any(client.task is not None for client in self._clients)

    # --- asking

    def do(self, line: Line) -> None:
        client = self._idle(line)
        if client is not None:
            self._count += 1
            ask = self._ask(client, line)
            if ask is not None:
                if line.what == "read":
                    client.target = self._reads_where(line)
                self._begin(client, ask, self._count)

    def _idle(self, line: Line) -> Client | None:
        """Who has time; to settle a job, somebody who holds one."""
        first = line.who % CLIENTS
        idle = [client for client in self._clients[first:] + self._clients[:first] if client.task is None]
        holders = [client for client in idle if client.held] if line.what in ("ack", "fail", "beat") else []
        return (holders or idle or [None])[0]

    def _begin(self, client: Client, ask: Operation | str, number: int, first: Task | None = None) -> None:
        client.task = Task(client, ask, number, self._cluster.events.count, first)
        self.tasks.append(client.task)
        self._cluster.coverage["calls"] += 1
        self._try(client.task)

    def _settle(self, client: Client, claim: tuple[str, int]) -> None:
        """The worker has done its work."""
        if claim not in client.held:
            return
        if client.task is not None:
            self._cluster.events.after(200 * MS, self._settle, client, claim)
            return
        client.held.remove(claim)
        self._count += 1
        self._begin(client, ack(claim[0], ask=self._count, token=claim[1], result=b"%d" % self._count), self._count)

    def _repeat(self, task: Task) -> None:
        """The same request under the same id, though it was answered: its sender has forgotten, as after a crash."""
        if task.client.task is None:
            self._count += 1
            self._cluster.coverage["requests repeated"] += 1
            self._begin(task.client, self.repeated(task), self._count, first=task)

    def _ask(self, client: Client, line: Line) -> Operation | str | None:
        number, span_ms = self._count, line.span_ns // MS
        if line.what == "enqueue":
            return self._enqueue(number, line)
        if line.what == "read":
            return self.jobs[line.span_ns % len(self.jobs)] if self.jobs else None
        if line.what == "fetch" or not client.held:
            queues = QUEUES if line.who % 3 else QUEUES[:1]
            return fetch(*queues, worker=client.name, claim=number, count=1 + line.who % 3, lease_ms=500 + 2 * span_ms)
        job, token = client.held[line.span_ns % len(client.held)]
        if line.what == "beat":
            return heartbeat(job, token=token)
        client.held.remove((job, token))
        if line.what == "ack":
            return ack(job, ask=number, token=token, result=b"%d" % number)
        return fail(job, ask=number, token=token, error="boom")

    def _reads_where(self, line: Line) -> int:
        """Any host may be asked; best of all one that believes in an old term that it leads."""
        hosts = list(self._cluster.hosts.values())
        leaders = [number for number, host in enumerate(hosts) if host.is_up and host.raft.is_leader]
        if leaders and line.who % 3:
            return min(leaders, key=lambda number: hosts[number].raft.term)
        return line.who

    def _enqueue(self, number: int, line: Line) -> Enqueue:
        scheduled_at = 0
        if line.who % 10 == 0:
            scheduled_at = self._cluster.wall_ns() + line.span_ns
        job = new_job(
            job_id(number),
            queue=QUEUES[line.who % 2],
            payload=b"%d:" % number + b"x" * (line.span_ns % 120),
            max_retries=1 + line.who % 4,
            backoff=Backoff.FIXED,
            base_delay_ms=300,
            scheduled_at=scheduled_at,
        )
        self.jobs.append(job.id)
        return enqueue(job)

    def _try(self, task: Task) -> None:
        if task.is_over:
            return
        client, cluster = task.client, self._cluster
        if task.tries == TRIES_MAX:
            task.is_over, client.task = True, None
            cluster.coverage["outcomes unknown"] += 1
            return
        if task.tries:
            task.ask = self.repeated(task)
        task.tries += 1
        hosts = list(cluster.hosts)
        name = hosts[client.target % len(hosts)]
        request = Request(client.name, task.number, task.ask)
        cluster.network.carry(client.name, name, cluster.hosts[name].request, request)
        cluster.events.after(cluster.dice.randrange(T // 2, 3 * T), self._timed_out, task, task.tries)

    def repeated(self, task: Task) -> Operation | str:
        """The same request once more, as a gateway sends it."""
        if isinstance(task.ask, Fetch):
            return msgspec.structs.replace(task.ask, is_repeated=True)
        return task.ask

    def _timed_out(self, task: Task, tries: int) -> None:
        if task.tries == tries and not task.is_over:
            self._cluster.coverage["client retries"] += 1
            task.client.target += 1
            self._try(task)

    # --- answers

    def answered(self, request: Request, host: str, answer: tuple[Any, ...]) -> None:
        client = self._by_name.get(request.client)
        task = client.task if client is not None else None
        if client is None or task is None or task.number != request.number:
            return  # too late
        if answer[0] == "elsewhere":
            hosts = list(self._cluster.hosts)
            is_known = answer[1] in hosts
            client.target = hosts.index(answer[1]) if is_known else client.target + 1
            self._cluster.coverage["redirects"] += 1
            self._cluster.events.after((50 if is_known else 500) * MS, self._again, task, task.tries)
            return
        _, result, index, place = answer
        task.is_over, client.task = True, None
        end = self._cluster.events.count
        self.answers.append(Answer(task.ask, task.call, end, result, (index, place)))
        self._learn(client, task, result, end)
        dice = self._cluster.dice
        if not isinstance(task.ask, str | Fail) and not task.is_repeat and dice.random() < REPEATED:
            self._cluster.events.after(dice.randrange(T), self._repeat, task)

    def _again(self, task: Task, tries: int) -> None:
        if task.tries == tries:
            self._try(task)

    def _learn(self, client: Client, task: Task, result: Any, end: int) -> None:
        ask, seen = task.ask, self._cluster.coverage
        if isinstance(ask, Enqueue):
            self.enqueued[ask.jobs[0].id] = end
            seen["jobs enqueued"] += not task.is_repeat
        elif isinstance(ask, Fetch):
            for item in result:
                self._learn_claim(client, (item.job_id, item.lease_token))
        elif isinstance(ask, Ack):
            if result[0] is None:
                self.acked[ask.items[0].job_id] = end
                seen["acks"] += not task.is_repeat
            else:
                seen["acks refused"] += 1

    def _learn_claim(self, client: Client, claim: tuple[str, int]) -> None:
        if claim in self._claims:
            return  # a repeated fetch finds what it claimed
        self._claims.add(claim)
        client.held.append(claim)
        self._cluster.coverage["claims"] += 1
        if self._cluster.dice.random() < SETTLED:
            self._cluster.events.after(self._cluster.dice.randrange(T), self._settle, client, claim)

    # --- the history, job by job

    def history(self) -> list[Op]:
        """What clients asked and were told, without what the machine did by itself."""
        ended = {(answer.call, id(answer.ask)): answer for answer in self.answers}
        ops: list[Op] = []
        claims: set[tuple[str, int]] = set()
        for task in self.tasks:
            for op in ops_of(task, ended.get((task.call, id(task.ask)))):
                if op.kind != "claim" or (op.job, op.token) not in claims:
                    ops.append(op)
                if op.kind == "claim":
                    claims.add((op.job, op.token))
        return ops


def ops_of(task: Task, answer: Answer | None) -> list[Op]:
    ask, name = task.ask, task.client.name
    times: dict[str, Any] = {"call": task.call, "client": name}
    result: Any = None
    if answer is not None:
        times["end"], result = answer.end, answer.result
    if isinstance(ask, str):
        return [Op("read", ask, result=result, **times)]
    if isinstance(ask, Enqueue):
        return [Op("enqueue", ask.jobs[0].id, result=result and result[0].name.lower(), **times)]
    if isinstance(ask, Fetch):
        if task.first is not None:
            times["call"] = task.first.call  # a late try of the first one may have claimed what this one finds
        return [Op("claim", item.job_id, token=item.lease_token, result="ok", **times) for item in result or []]
    if isinstance(ask, Heartbeat):
        beat = ask.beats[0]
        return [Op("beat", beat.job_id, token=beat.lease_token, result=result and result[0].name.lower(), **times)]
    assert isinstance(ask, Ack | Fail)
    item = ask.items[0]
    if isinstance(ask, Ack):
        told = None if result is None else "ok" if result[0] is None else "lost"
        return [Op("ack", item.job_id, token=item.lease_token, result=told, **times)]
    told = None if result is None else "lost" if hasattr(result[0], "code") else result[0].state.name.lower()
    if told == "lost" and task.tries > 1:
        told = None  # an earlier try may have succeeded, and another worker's claim come between
    return [Op("fail", item.job_id, token=item.lease_token, result=told, **times)]
