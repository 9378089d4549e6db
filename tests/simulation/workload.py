"""What a seed asks for: the clients and their calls, and the faults, written down before anything runs.

A plan is a list of lines in the order of time. Dropping any of them leaves a plan, which is how a failing seed is
shrunk. Hosts are named by numbers that are resolved when the line's moment has come.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec

from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail
from corvo.ops.jobs.fetch import Fetch
from corvo.ops.jobs.heartbeat import Heartbeat
from corvo.ops.operation import Operation
from corvo.retry import Backoff
from tests.simulation.clock import MS, T
from tests.simulation.host import Request
from tests.simulation.linearizability import Answer, Op
from tests.simulation.network import Weather
from tests.support.builders import ack, enqueue, fail, fetch, heartbeat, job_id, new_job

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

QUEUES = ("mail", "video")
TRIES_MAX = 14
CLIENTS = 5


class Line(msgspec.Struct, frozen=True):
    """One thing that is done to the cluster."""

    at_ns: int
    what: str  # a method of Cluster or Clients: do_{what}
    who: int = 0
    span_ns: int = 0

    def __str__(self) -> str:
        return f"{self.at_ns // MS:>6} ms  {self.what} {self.who} {self.span_ns // MS or ''}".rstrip()


class Plan(msgspec.Struct, frozen=True):
    seed: int
    nodes: int
    weather: Weather
    lease_reads: bool
    drift_ppm: int
    disk_ns: int  # a sync takes up to this long on a good day
    snapshot_timeout_ns: int
    lines: tuple[Line, ...]


ASKS = ("enqueue", "fetch", "ack", "fail", "beat", "read")
ASK_WEIGHTS = (22, 26, 34, 8, 4, 36)
# What can go wrong, how often in comparison, and for how long.
FAULTS: dict[str, tuple[int, int]] = {
    "crash": (10, 3 * T),
    "crash_leader": (8, 3 * T),
    "power_cut": (2, T),
    "isolate": (5, 4 * T),
    "isolate_leader": (6, 4 * T),
    "cut_one_way": (5, 4 * T),
    "pause": (5, 3 * T),
    "slow_disk": (7, 3 * T),
    "slow_apply": (4, 2 * T),
    "fail_sync": (2, T),
    "jump_wall": (2, 10 * T),
    "stop_at_lease": (3, 3 * T),
    "transfer": (7, T),
    "add_learner": (4, T),
    "promote": (7, T),
    "remove": (3, T),
    "demote": (1, T),
    "rush_in": (3, T),
    "change_at_election": (3, T),
    "crash_at_install": (3, 2 * T),
    "crash_at_write": (4, 2 * T),
}


def make_plan(seed: int) -> Plan:
    dice = random.Random(seed)
    storm_ns = dice.choice([8, 12, 12, 16]) * T
    weather = Weather(
        loss=dice.choice([0.0, 0.0, 0.02, 0.1, 0.2]),
        repeat=dice.choice([0.0, 0.05, 0.15]),
        slow=dice.choice([0.0, 0.0, 0.03, 0.1]),
        delay_ns=dice.choice([2, 10, 40]) * MS,
        keep=dice.choice([0.0, 0.5, 0.9]),
        stream_loss=dice.choice([0.0, 0.3, 0.7]),
        stream_ns=dice.choice([20 * MS, T // 2, 2 * T]),
    )
    # Not every seed has every fault: what is rare beside others must have seeds of its own.
    kinds = [kind for kind in FAULTS if dice.random() < 0.6]
    weights = [FAULTS[kind][0] for kind in kinds]
    lines = []
    for _ in range(dice.choice([10, 20, 30]) if kinds else 0):
        kind = dice.choices(kinds, weights)[0]
        at_ns, longest_ns = dice.randrange(T, storm_ns), FAULTS[kind][1]
        lines.append(Line(at_ns, kind, dice.randrange(60), dice.randrange(longest_ns // 20, longest_ns)))
    for _ in range(dice.choice([40, 80, 120])):
        kind = dice.choices(ASKS, ASK_WEIGHTS)[0]
        lines.append(Line(dice.randrange(T, storm_ns), kind, dice.randrange(60), dice.randrange(3 * T)))
    lines.sort(key=lambda line: line.at_ns)
    nodes = dice.choice([3, 3, 5])
    drift_ppm, disk_ns = dice.choice([0, 10_000, 25_000]), dice.choice([2, 20, 100]) * MS
    snapshot_timeout_ns = dice.choice([T, 3 * T])
    return Plan(seed, nodes, weather, dice.random() < 0.6, drift_ppm, disk_ns, snapshot_timeout_ns, tuple(lines))


class Task(msgspec.Struct):
    """A call that a client makes until it is answered or given up."""

    client: Client
    ask: Operation | str
    number: int
    call: int
    tries: int = 0
    is_over: bool = False


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

    @property
    def is_busy(self) -> bool:
        return any(client.task is not None for client in self._clients)

    # --- asking

    def do(self, line: Line) -> None:
        client = self._clients[line.who % CLIENTS]
        if client.task is not None:
            return
        self._count += 1
        ask = self._ask(client, line)
        if ask is None:
            return
        events = self._cluster.events
        client.task = Task(client, ask, self._count, events.count)
        self.tasks.append(client.task)
        if line.what == "read":
            client.target = self._reads_where(line)
        self._cluster.coverage["calls"] += 1
        self._try(client.task)

    def _ask(self, client: Client, line: Line) -> Operation | str | None:
        number, span_ms = self._count, line.span_ns // MS
        if line.what == "enqueue":
            return self._enqueue(number, line)
        if line.what == "fetch":
            queues = QUEUES if line.who % 3 else QUEUES[:1]
            return fetch(*queues, worker=client.name, claim=number, count=1 + line.who % 2, lease_ms=500 + span_ms)
        if line.what == "read":
            return self.jobs[line.span_ns % len(self.jobs)] if self.jobs else None
        if not client.held:
            return None
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
            cluster.coverage["retries"] += 1
            task.ask = self.repeated(task)
        task.tries += 1
        hosts = list(cluster.hosts)
        name = hosts[client.target % len(hosts)]
        request = Request(client.name, task.number, task.ask)
        cluster.network.carry(client.name, name, cluster.hosts[name].request, request)
        cluster.events.after(cluster.dice.randrange(T // 2, 2 * T), self._timed_out, task, task.tries)

    def repeated(self, task: Task) -> Operation | str:
        """The same request once more, as a gateway sends it."""
        if isinstance(task.ask, Fetch):
            return msgspec.structs.replace(task.ask, is_repeated=True)
        return task.ask

    def _timed_out(self, task: Task, tries: int) -> None:
        if task.tries == tries and not task.is_over:
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
            client.target = hosts.index(answer[1]) if answer[1] in hosts else client.target + 1
            self._cluster.events.after(100 * MS, self._again, task, task.tries)
            return
        _, result, index, place = answer
        task.is_over, client.task = True, None
        end = self._cluster.events.count
        self.answers.append(Answer(task.ask, task.call, end, result, (index, place)))
        self._learn(client, task, result, end)

    def _again(self, task: Task, tries: int) -> None:
        if task.tries == tries:
            self._try(task)

    def _learn(self, client: Client, task: Task, result: Any, end: int) -> None:
        ask, seen = task.ask, self._cluster.coverage
        if isinstance(ask, Enqueue):
            self.enqueued[ask.jobs[0].id] = end
            seen["jobs enqueued"] += 1
        elif isinstance(ask, Fetch):
            client.held.extend((item.job_id, item.lease_token) for item in result)
            seen["claims"] += len(result)
        elif isinstance(ask, Ack):
            if result[0] is None:
                self.acked[ask.items[0].job_id] = end
                seen["acks"] += 1
            else:
                seen["acks refused"] += 1

    # --- the history, job by job

    def history(self) -> list[Op]:
        """What clients asked and were told, without what the machine did by itself."""
        ended = {(answer.call, id(answer.ask)): answer for answer in self.answers}
        ops: list[Op] = []
        for task in self.tasks:
            answer = ended.get((task.call, id(task.ask)))
            ops.extend(_ops_of(task, answer))
        return ops


def _ops_of(task: Task, answer: Answer | None) -> list[Op]:
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
