"""Drives connections as a plan says.

Steady: each connection enqueues, fetches and acks in every turn, as fast as answers come. Burst: all jobs in, then all
out. Latency: jobs set out at fixed moments, whatever becomes of those before, and are timed from the moment that they
should have set out until a waiting worker has them. A server that stands still for a second is then seen by all the
jobs of that second, not by the one that happened to be under way.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from time import perf_counter
from typing import Any

import msgspec

from corvo.client.bench.http_link import HttpLink
from corvo.client.bench.links import BenchLink, BenchOutcome, ClaimedJob, Lost, RoundTrip, Target
from corvo.client.bench.plan import BenchPlan
from corvo.client.bench.stream_link import StreamLink
from corvo.client.bench.tally import OVERLOADS, Tally
from corvo.model.errors import RETRYABLE

LOST_S_FIRST, LOST_S_MAX = 0.1, 2.0  # pause before a lost connection is opened again
REFUSED_S = 0.05  # pause after a refusal that names no time
WAIT_MS = 1_000  # of a worker with nothing to do
ARRIVE_S_MAX = 10.0  # after the last enqueue, for the jobs that are still under way

Watch = Callable[[int], None]  # told of so many more jobs


class Measured(msgspec.Struct):
    seconds: float
    phases_s: dict[str, float] = {}  # of a burst


class Engine:
    """One run. `stop` ends it early; what was counted until then stands."""

    def __init__(
        self,
        plan: BenchPlan,
        target: Target,
        queues: tuple[str, ...],
        tally: Tally,
        watch: Watch,
        stop: asyncio.Event,
    ) -> None:
        self._plan = plan
        self._target = target
        self._queues = queues
        self._tally = tally
        self._watch = watch
        self._stop = stop
        self._left = plan.jobs  # to be enqueued yet; None: no end
        self._job = _job_maker(plan.payload_bytes)

    async def run(self) -> Measured:
        run = {"steady": self._steady, "burst": self._burst, "latency": self._latency}[self._plan.mode]
        return await run()

    # Steady

    async def _steady(self) -> Measured:
        return Measured(await self._until_over(self._lives))

    async def _lives(self, line: "_Line") -> None:
        acks: list[ClaimedJob] = []
        tally, batch = self._tally, self._plan.batch
        while not self._stop.is_set() and not (self._left == 0 and tally.completed >= tally.enqueued):
            new_jobs = self._take(batch, line.queue)
            before = perf_counter()
            wait_ms = 0 if new_jobs or acks else WAIT_MS // 10
            outcome = await line.turn(RoundTrip((line.queue,), new_jobs, acks, batch, wait_ms))
            if outcome is None:
                self._give_back(len(new_jobs))
                acks = []  # theirs may be done or not; their leases end by themselves
                continue
            tally.turns_s.append(perf_counter() - before)
            self._give_back(len(new_jobs) - outcome.enqueued)
            acks = outcome.jobs if outcome.acked or not _may_repeat(outcome) else acks + outcome.jobs

    # Burst

    async def _burst(self) -> Measured:
        phases = {"enqueue": await self._until_over(self._fill), "drain": await self._until_over(self._drain)}
        return Measured(sum(phases.values()), phases)

    async def _fill(self, line: "_Line") -> None:
        while self._left and not self._stop.is_set():
            new_jobs = self._take(self._plan.batch, line.queue)
            outcome = await line.turn(RoundTrip((line.queue,), new_jobs))
            self._give_back(len(new_jobs) - (outcome.enqueued if outcome else 0))

    async def _drain(self, line: "_Line") -> None:
        """Every line takes from all queues, so that none is left over when its own connection was lost."""
        acks: list[ClaimedJob] = []
        tally = self._tally
        while tally.completed < tally.enqueued and not self._stop.is_set():
            outcome = await line.turn(RoundTrip(line.queues, (), acks, self._plan.batch, 0 if acks else WAIT_MS // 10))
            if outcome is not None:
                acks = outcome.jobs if outcome.acked or not _may_repeat(outcome) else acks + outcome.jobs

    # Latency

    async def _latency(self) -> Measured:
        jobs, rate = self._plan.jobs or 0, self._plan.rate or 1.0
        arrived: set[int] = set()
        landed, is_over = asyncio.Event(), asyncio.Event()
        started = perf_counter() + 0.2  # the workers wait by then

        async def produce(line: _Line, first: int) -> None:
            for number in range(first, jobs, self._plan.connections * self._plan.ahead):
                await asyncio.sleep(max(started + number / rate - perf_counter(), 0.0))
                queue = self._queues[number % len(self._queues)]
                while not self._stop.is_set():
                    outcome = await line.turn(RoundTrip((queue,), (self._job(queue, number),)))
                    if outcome is not None and (outcome.enqueued or not _may_repeat(outcome)):
                        break

        async def work(line: _Line) -> None:
            acks: list[ClaimedJob] = []
            queues = self._share(line.number)
            while not is_over.is_set():
                outcome = await line.turn(RoundTrip(queues, (), acks, 1, WAIT_MS))
                now = perf_counter()
                acks = [] if outcome is None else outcome.jobs
                for job in acks:
                    number = msgspec.json.decode(job.payload, type=_Payload).n
                    if number not in arrived:  # a second attempt is no second arrival
                        arrived.add(number)
                        landed.set()
                        self._tally.latencies_s.append(now - (started + number / rate))
            if acks:
                await line.turn(RoundTrip(queues, (), acks))

        async with AsyncExitStack() as open_lines:
            lines = [await self._line(open_lines, number) for number in range(2 * self._plan.connections)]
            # As many turns at once as in a steady run: with few, the rate would be bounded by how long one takes.
            ahead = range(self._plan.ahead)
            working, producing = lines[self._plan.connections :], lines[: self._plan.connections]
            workers = [asyncio.ensure_future(work(line)) for line in working for _ in ahead]
            places = ((line, turn * len(producing) + line.number) for line in producing for turn in ahead)
            producers = asyncio.gather(*(produce(line, first) for line, first in places))
            try:
                await _first_of(producers, self._stop.wait())
                await _first_of(self._all_in(arrived, landed), asyncio.sleep(ARRIVE_S_MAX), self._stop.wait())
                is_over.set()
                seconds = perf_counter() - started
                await asyncio.wait(workers, timeout=2 * WAIT_MS / 1000)
            finally:
                await _end([producers, *workers])
        if missing := self._tally.enqueued - len(arrived):
            self._tally.errors["NOT_ARRIVED"] += missing
        return Measured(seconds)

    async def _all_in(self, arrived: set[int], landed: asyncio.Event) -> None:
        while len(arrived) < self._tally.enqueued:
            landed.clear()
            await landed.wait()

    # Common ground

    async def _until_over(self, work: Callable[["_Line"], Awaitable[None]]) -> float:
        """All connections work, each with as many turns under way as the plan says, until they are done, the time is
        over, or somebody says stop. Then the count ends, and what is under way is no longer waited for. Seconds."""
        async with AsyncExitStack() as open_lines:
            lines = [await self._line(open_lines, number) for number in range(self._plan.connections)]
            started = perf_counter()
            tasks = [asyncio.ensure_future(work(line)) for line in lines for _ in range(self._plan.ahead)]
            working = asyncio.gather(*tasks)
            try:
                await _first_of(working, asyncio.sleep(self._plan.seconds), self._stop.wait())
                seconds = perf_counter() - started
                self._tally.is_counting = not self._stop.is_set() and all(task.done() for task in tasks)
            finally:
                await _end([working, *tasks])
        return seconds

    async def _line(self, open_lines: AsyncExitStack, number: int) -> "_Line":
        line = _Line(self, number)
        await line.open()
        open_lines.push_async_callback(line.close)
        return line

    def _take(self, count: int, queue: str) -> tuple[bytes, ...]:
        if self._left is not None:
            count = min(count, self._left)
            self._left -= count
        return (self._job(queue, 0),) * count

    def _give_back(self, count: int) -> None:
        if self._left is not None:
            self._left += count

    def took(self, outcome: BenchOutcome) -> None:
        tally = self._tally
        tally.count(outcome.enqueued, len(outcome.jobs), outcome.acked)
        for code in outcome.refusals:
            tally.refuse(code)
        if tally.is_counting:
            self._watch(outcome.enqueued if self._plan.mode == "latency" else outcome.acked)

    async def connect(self, number: int) -> BenchLink:
        link = StreamLink if self._plan.protocol == "stream" else HttpLink
        return await link.open(self._target, f"bench-{number}")

    def lost(self, why: str) -> None:
        self._tally.errors[why.partition(":")[0].upper().replace(" ", "_")] += 1

    def _share(self, number: int) -> tuple[str, ...]:
        """What one worker waits for: all of them have one, and all queues have a worker."""
        workers = self._plan.connections
        return self._queues[number % workers :: workers] or (self._queues[number % len(self._queues)],)

    def queues_of(self, number: int) -> tuple[str, ...]:
        """All of them, its own first."""
        first = number % len(self._queues)
        return self._queues[first:] + self._queues[:first]


class _Line:
    """A connection that is opened again when it is lost, for as long as the run goes on."""

    def __init__(self, engine: Engine, number: int) -> None:
        self.number = number
        self.queues = engine.queues_of(number)
        self.queue = self.queues[0]
        self._engine = engine
        self._link: BenchLink | None = None
        self._opening = asyncio.Lock()
        self._pause_s = LOST_S_FIRST

    async def open(self) -> None:
        """The first time: who cannot be reached then is not waited for."""
        self._link = await self._engine.connect(self.number)

    async def turn(self, turn: RoundTrip) -> BenchOutcome | None:
        """None: the connection was lost, and it is not known what became of the turn."""
        link = self._link
        if link is None:
            await self._reopen()
            return None
        try:
            outcome = await link.turn(turn)
        except Lost as lost:
            self._engine.lost(str(lost))
            if self._link is link:
                self._link = None
                await link.close()
            return None
        self._pause_s = LOST_S_FIRST
        self._engine.took(outcome)
        if outcome.refusals:
            await asyncio.sleep(outcome.retry_after_s or REFUSED_S)
        return outcome

    async def _reopen(self) -> None:
        async with self._opening:
            if self._link is not None:
                return  # another turn of this connection was faster
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, LOST_S_MAX)
            try:
                self._link = await self._engine.connect(self.number)
            except Lost as lost:
                self._engine.lost(str(lost))

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()


class _Payload(msgspec.Struct):
    n: int


def _job_maker(payload_bytes: int) -> Callable[[str, int], bytes]:
    """Jobs as JSON whose payload has about so many bytes."""
    padding = "x" * max(payload_bytes - len('{"n":0,"pad":""}'), 0)

    def make(queue: str, number: int) -> bytes:
        return f'{{"queue":"{queue}","payload":{{"n":{number},"pad":"{padding}"}}}}'.encode()

    return make


def _may_repeat(outcome: BenchOutcome) -> bool:
    return bool(outcome.refusals) and (OVERLOADS | RETRYABLE).issuperset(outcome.refusals)


async def _first_of(*waits: Awaitable[Any]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others - {waits[0]}:  # the first may be somebody's to end
        task.cancel()
    for task in done:
        task.result()  # what it failed with, if it did


async def _end(tasks: "list[asyncio.Future[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
