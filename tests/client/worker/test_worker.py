"""A worker against a real server: one server and one worker for the file, a queue for each test."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaos.node import Node
from corvo.client.bodies import CancelBody, EnqueueBatchBody, EnqueueBody
from corvo.client.worker import (
    Cancel,
    Context,
    Continue,
    Corvo,
    Discard,
    Hold,
    JobFailed,
    JobHandle,
    NoteRefused,
    Retry,
    RunningJob,
    Snooze,
    Worker,
    current,
)
from tests.client.worker import sample_tasks
from tests.support.waiting import eventually

pytestmark = pytest.mark.system
WITHIN_S = 30.0


class Running:
    """A worker in a loop and a thread of its own, as in a program that does something else."""

    def __init__(self, app: Corvo, **options: Any) -> None:
        self.worker = Worker(app, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._do(self.worker.start())

    def _do(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(WITHIN_S)

    def stop(self) -> int:
        try:
            code: int = self._do(self.worker.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(WITHIN_S)
            self._loop.close()
        return code


Start = Callable[..., Running]


@pytest.fixture
def app(shared_node: Node) -> Iterator[Corvo]:
    app = Corvo(shared_node.url)
    yield app
    app.close()


@pytest.fixture
def start(app: Corvo) -> Iterator[Start]:
    """Starts workers; those that the test leaves are stopped."""
    running: list[Running] = []

    def begin(app_: Corvo = app, **options: Any) -> Running:
        running.append(Running(app_, **options))
        return running[-1]

    yield begin
    for one in running:
        if one._thread.is_alive():
            one.stop()


def state_of(handle: JobHandle) -> str:
    return handle.get().state


def test_results_of_each_kind_of_handler_come_back(shared_node: Node, start: Start) -> None:
    sample_tasks.app.servers = [shared_node.url]
    start(sample_tasks.app)

    assert sample_tasks.double.enqueue(4).result() == 8
    assert sample_tasks.mirrored.enqueue(sample_tasks.Point(1, 2)).result() == {"x": 2, "y": 1}
    first, second = sample_tasks.square.enqueue(3), sample_tasks.square.enqueue(4)
    assert (first.result()["square"], second.result()["square"]) == (9, 16)
    assert first.get().checkpoint == {"n": 3}
    with pytest.raises(JobFailed, match=r"the process of the handler died \(signal SIGKILL"):
        sample_tasks.killed.enqueue().result()
    with pytest.raises(JobFailed, match=r"the hard time limit of 0\.5 s is over"):
        sample_tasks.endless.enqueue().result()
    sample_tasks.app.close()


def test_a_handler_says_how_its_job_goes_on(app: Corvo, start: Start) -> None:
    @app.task("outcomes.one", bind=True)
    def one(ctx: Context, what: str) -> Any:
        seen = ctx.saved or {"n": 0}
        if what == "continue":
            return Continue({"n": seen["n"] + 1}) if seen["n"] < 3 else [seen["n"], ctx.attempt]
        if ctx.attempt > 1:
            return "again"
        ends: dict[str, Any] = {
            "retry": Retry(after=0.01),
            "snooze": Snooze(60),
            "cancel": Cancel("not needed"),
            "discard": Discard("no such user"),
            "hold": Hold("is this right?"),
        }
        raise ends[what]

    jobs = {what: one.enqueue(what) for what in ("continue", "retry", "snooze", "cancel", "discard", "hold")}
    start()

    assert jobs["continue"].result() == [3, 1]
    assert jobs["retry"].result() == "again"
    for what, state in (("snooze", "scheduled"), ("cancel", "cancelled"), ("discard", "dead"), ("hold", "held")):
        eventually(lambda what=what, state=state: state_of(jobs[what]) == state, what, WITHIN_S)
    assert jobs["snooze"].get().attempt == 0
    assert jobs["cancel"].get().errors[-1].error == "not needed"
    assert jobs["discard"].get().errors[-1].error == "no such user"
    assert jobs["hold"].get().hold_reason == "is this right?"


def test_chains_pass_results_on_and_batches_call_back(app: Corvo, start: Start) -> None:
    @app.task("flow.add")
    def add(a: int, b: int) -> int:
        return a + b

    told: list[dict[str, Any]] = []

    @app.task("flow.done")
    def done(album: int, batch: dict[str, Any]) -> None:
        told.append({"album": album, **batch})

    results: list[int] = []

    @app.task("flow.end")
    def end(total: int) -> None:
        results.append(total)

    start()
    app.chain(add.s(1, 2), add.s(b=10), end.s())
    batch = app.batch([add.s(n, n) for n in range(5)], on_complete=done.s(album=42))

    eventually(lambda: results == [13] and told, "chain and batch", WITHIN_S)
    assert (told[0]["album"], told[0]["succeeded"], told[0]["batch_id"]) == (42, 5, batch.id)
    assert [job.result() for job in batch.jobs] == [0, 2, 4, 6, 8]


def test_unique_jobs_stand_for_each_other(app: Corvo) -> None:
    @app.task("unique.one", unique=True)
    def one(n: int) -> None: ...

    first, second, other = one.enqueue(1), one.delay(1), one.schedule(after="1h").enqueue(2)

    assert (second.id, second.is_duplicate, other.status) == (first.id, True, "scheduled")


def test_plain_handlers_get_the_job_as_it_is(app: Corvo, start: Start) -> None:
    worker = Worker(app)

    async def handle(job: RunningJob, context: Context) -> Any:
        return [bytes(job.payload).decode(), context.attempt]

    worker.register("plain.two", handle)
    worker.register("plain.one", lambda job: job.queue)
    start()

    ids = app.client.enqueue_batch(_bodies("plain.one", "plain.two")).job_ids
    assert [JobHandle(lambda: app.client, one).result() for one in ids] == ["plain.one", ['{"a":1}', 1]]


def _bodies(*queues: str) -> EnqueueBatchBody:
    return EnqueueBatchBody([EnqueueBody(queue=queue, payload={"a": 1}) for queue in queues])


def test_a_payload_that_does_not_fit_fails_with_where(app: Corvo, start: Start) -> None:
    @app.task("bad.payload")
    def work(n: int) -> None: ...

    start()
    body = _bodies("bad.payload")
    body.jobs[0].max_retries = 1
    (job_id,) = app.client.enqueue_batch(body).job_ids

    with pytest.raises(JobFailed, match=r"BadArguments: .*work cannot take this payload: n is missing"):
        JobHandle(lambda: app.client, job_id).result()


def test_resources_and_middlewares_are_around_the_handlers(shared_node: Node, start: Start) -> None:
    told: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[dict[str, str]]:
        told.append("open")
        yield {"db": "open"}
        told.append("closed")

    app = Corvo(shared_node.url, lifespan=lifespan)

    @app.middleware
    def outer(ctx: Context) -> Iterator[None]:  # type: ignore[misc]  # a generator is an iterator, too
        told.append("outer")
        try:
            yield
        except ValueError:
            told.append("saw the error")
            raise

    @app.middleware
    def inner(ctx: Context) -> Iterator[None]:  # type: ignore[misc]
        told.append("inner")
        yield

    @app.task("around.one")
    async def one(fails: bool) -> str:
        if fails:
            raise ValueError
        ctx = current()
        return f"{ctx.resources['db']} {ctx.queue}"

    running = start(app)
    assert one.enqueue(False).result() == "open around.one"
    failing = one.enqueue(True)
    eventually(lambda: state_of(failing) == "retrying", "", WITHIN_S)
    assert running.stop() == 0
    app.close()

    assert told == ["open", "outer", "inner", "outer", "inner", "saw the error", "closed"]


def test_a_task_with_a_concurrency_of_its_own_keeps_to_it(app: Corvo, start: Start) -> None:
    most, now, lock = [0], [0], threading.Lock()
    all_here = threading.Barrier(3, timeout=WITHIN_S)

    @app.task("slots.two", concurrency=2)
    def two() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.01)
        with lock:
            now[0] -= 1

    @app.task("slots.others")
    def others() -> None:
        all_here.wait()  # three at a time, beside the two

    jobs = [two.enqueue() for _ in range(12)] + [others.enqueue() for _ in range(3)]
    start(concurrency=3)

    for job in jobs:
        job.result()
    assert most[0] <= 2


def test_a_cancelled_job_stops_its_handler(app: Corvo, start: Start) -> None:
    begun = threading.Event()

    @app.task("cancel.loop")
    async def in_loop() -> None:
        begun.set()
        await asyncio.sleep(WITHIN_S)

    @app.task("cancel.thread", bind=True)
    def in_thread(ctx: Context) -> None:
        begun.set()
        while not ctx.cancelled:
            time.sleep(0.01)

    start(lease=1.0)  # a heartbeat, which tells, every third of a second
    for task in (in_loop, in_thread):
        begun.clear()
        job: JobHandle = task.enqueue()
        assert begun.wait(WITHIN_S)
        app.client.cancel(job.id, CancelBody("30s"))
        eventually(lambda job=job: state_of(job) == "cancelled", "the handler to stop", WITHIN_S)
        assert job.get().errors[-1].error == "cancelled"


def test_progress_checkpoints_and_a_refused_usage(app: Corvo, start: Start) -> None:
    refused: list[str] = []

    @app.task("notes.one", bind=True)
    async def one(ctx: Context) -> None:
        await ctx.progress(3, 10, "copying", file="a.txt")
        await ctx.checkpoint({"row": 3})
        try:
            await ctx.usage(model="m", input_tokens=10)
        except NoteRefused as error:
            refused.append(str(error))

    start()
    job = one.enqueue()
    job.result()

    assert job.get().progress == {"current": 3, "total": 10, "message": "copying", "file": "a.txt"}
    assert job.get().checkpoint == {"row": 3}
    assert len(refused) <= 1  # a server that keeps usage takes it
    assert all("usage" in told for told in refused)


def test_long_jobs_keep_their_leases_even_if_they_block_the_loop(app: Corvo, start: Start) -> None:
    runs: list[int] = []

    @app.task("long.blocks", bind=True)
    async def blocks(ctx: Context) -> int:
        runs.append(ctx.attempt)
        time.sleep(2.5)  # more than two leases, and nothing else of the loop runs
        return ctx.attempt

    running = start(lease=1.0, health="127.0.0.1:0")
    job = blocks.enqueue()
    eventually(lambda: runs, "the handler to begin", WITHIN_S)
    worker = running.worker._worker
    assert worker is not None
    eventually(lambda: worker.tally.blocked_s > 0.5, "the watch to notice", WITHIN_S)

    assert job.result() == 1
    assert runs == [1]


def test_health_and_metrics(app: Corvo, start: Start) -> None:
    @app.task("health.one")
    async def one() -> None: ...

    running = start(health="127.0.0.1:0", concurrency=4)
    one.enqueue().result()
    port = eventually(lambda: running.worker.health_port, "the health server", WITHIN_S)
    url = f"http://127.0.0.1:{port}"

    def healthy() -> bool:
        return httpx.get(f"{url}/healthz").status_code == 200

    eventually(healthy, "a healthy worker", WITHIN_S)
    assert httpx.get(f"{url}/healthz").json()["slots"] == 4
    text = httpx.get(f"{url}/metrics").text
    assert 'corvo_worker_job_seconds_count{queue="health.one"} 1' in text
    assert "corvo_worker_connected 1" in text
    assert httpx.get(f"{url}/nothing").status_code == 404


def test_a_worker_without_a_server_is_unhealthy_and_stops(start: Start) -> None:
    app = Corvo("http://127.0.0.1:1")
    app.register("a", lambda job: None)
    running = start(app, health="127.0.0.1:0")
    port = eventually(lambda: running.worker.health_port, "the health server", WITHIN_S)

    answer = httpx.get(f"http://127.0.0.1:{port}/healthz")

    assert (answer.status_code, answer.json()["reasons"]) == (503, ["not connected"])
    assert running.stop() == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [({"queues": ["nothing"]}, "no task and no handler is registered for nothing"), ({}, "there is nothing to run")],
)
def test_a_worker_without_handlers_does_not_start(app: Corvo, options: dict[str, Any], told: str) -> None:
    with pytest.raises(LookupError, match=told):
        asyncio.run(Worker(app, **options).start())


def test_a_worker_starts_again_after_it_was_stopped(app: Corvo, tmp_path: Path) -> None:
    @app.task("twice.one")
    async def one(n: int) -> int:
        return n

    async def both() -> list[Any]:
        worker = Worker(app)
        found = []
        for n in range(2):
            await worker.start()
            job = await one.aenqueue(n)
            found.append(await asyncio.to_thread(job.result))
            assert await worker.stop() == 0
        return found

    assert asyncio.run(both()) == [0, 1]
