"""A run from its first question to its last, and what it found, with all that one must know to believe it."""

import asyncio
import os
import platform
import secrets
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import uvloop

from corvo import __version__
from corvo.client.bench.engine import Engine, Measured
from corvo.client.bench.links import Lost, Target
from corvo.client.bench.plan import BenchPlan
from corvo.client.bench.tally import Percentiles, Tally, percentiles
from corvo.client.bodies import DeleteQueueQuery
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable


class Machine(msgspec.Struct, frozen=True):
    """Where the load came from; on a loopback address, where the server ran too."""

    cores: int
    cpu: str
    memory_gb: float
    system: str
    python: str
    load: float  # running processes, average of the minute before


class ServerSeen(msgspec.Struct, frozen=True):
    url: str
    version: str
    nodes: int
    shards: int
    is_fsynced: bool


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    started_at: str
    version: str  # of this program
    machine: Machine
    server: ServerSeen
    plan: BenchPlan
    is_whole: bool  # False: it was stopped before its end
    seconds: float
    enqueued: int
    claimed: int
    completed: int
    rates_per_s: dict[str, float]
    turn_ms: Percentiles | None  # of one frame, or of the requests that stand for one
    latency_ms: Percentiles | None  # from the moment that a job was due to be sent until a worker had it
    overloads: int
    errors: dict[str, int]
    notes: list[str]


def measure(client: Client, plan: BenchPlan, watch: Callable[[int], None], is_kept: bool = False) -> BenchReport:
    """`Unreachable` when there is no server, or when it takes no connections."""
    status = client.cluster_status()
    server = ServerSeen(client.server, status.version, max(len(status.nodes), 1), status.shards, status.fsync)
    name = f"bench.{secrets.token_hex(4)}"
    queues = tuple(f"{name}.{number}" for number in range(plan.queues))
    tally = Tally()
    started, machine = datetime.now(UTC), _machine()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        measured, is_whole = runner.run(_run(plan, client, queues, tally, watch))
    notes = [] if is_kept else _tidied(client, queues)
    return BenchReport(
        started_at=started.isoformat(timespec="seconds"),
        version=__version__,
        machine=machine,
        server=server,
        plan=plan,
        is_whole=is_whole,
        seconds=round(measured.seconds, 3),
        enqueued=tally.enqueued,
        claimed=tally.claimed,
        completed=tally.completed,
        rates_per_s=_rates(tally, measured),
        turn_ms=percentiles(tally.turns_s),
        latency_ms=percentiles(tally.latencies_s),
        overloads=tally.overloads,
        errors=dict(tally.errors),
        notes=notes,
    )


async def _run(
    plan: BenchPlan, client: Client, queues: tuple[str, ...], tally: Tally, watch: Callable[[int], None]
) -> tuple[Measured, bool]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stop.set)
    try:
        target = Target(client.server, client.secure, client.credentials)
        measured = await Engine(plan, target, queues, tally, watch, stop).run()
    except Lost as lost:
        raise Unreachable(str(lost)) from None
    finally:
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(signum)
    return measured, not stop.is_set()


def _rates(tally: Tally, measured: Measured) -> dict[str, float]:
    if measured.phases_s:
        amounts = {"enqueue": ("jobs enqueued", tally.enqueued), "drain": ("jobs drained", tally.completed)}
        phases = [(*amounts[name], seconds) for name, seconds in measured.phases_s.items()]
        return {name: _rate(amount, seconds) for name, amount, seconds in phases}
    operations = tally.enqueued + tally.claimed + tally.completed
    return {
        "jobs completed": _rate(tally.completed, measured.seconds),
        "operations": _rate(operations, measured.seconds),
    }


def _rate(amount: int, seconds: float) -> float:
    return round(amount / seconds, 1) if seconds else 0.0


def _tidied(client: Client, queues: tuple[str, ...]) -> list[str]:
    """The jobs are of no use to anybody. What could not be removed is said."""
    notes = []
    for queue in queues:
        try:
            client.delete_queue(queue, DeleteQueueQuery(confirm=True, force=True))
        except ServerRefused as refused:
            if refused.status != 404:
                notes.append(f"the queue {queue} was not deleted: {refused.message}")
        except Unreachable as error:
            return [f"the queues {queues[0]} and following were not deleted: {error}"]
    return notes


def _machine() -> Machine:
    return Machine(
        os.cpu_count() or 0,
        _cpu_name(),
        round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        f"{platform.system()} {platform.release()}",
        sys.version.split()[0],
        round(os.getloadavg()[0], 2),
    )


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
