"""The pytest plugin, as a user's own tests load it: real servers, inline tasks, a clock that moves."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system
APP = """
from corvo.worker import Cancel, Corvo, Retry, Snooze, current

app = Corvo("http://127.0.0.1:9")  # nothing answers there


@app.task("letters.send", max_retries=2)
def send(to: str, copies: int = 1) -> str:
    return f"{to} x{copies}"


@app.task("letters.flaky", max_retries=3)
def flaky(until: int) -> int:
    context = current()
    context.checkpoint({"seen": context.attempt})
    if context.attempt < until:
        raise ValueError("not yet")
    return context.attempt


@app.task("letters.sum")
async def add_up(batch: dict) -> int:
    return batch["completed"]


@app.task("letters.end")
def end(how: str) -> None:
    raise {"cancel": Cancel("no"), "snooze": Snooze(5), "retry": Retry(1)}[how]


@app.task("letters.shout")
def shout(text: str) -> str:
    return text.upper()
"""
INLINE = """
import pytest
from corvo.testing.inline import Endless
from corvo.worker import JobFailed
from app import add_up, app, end, flaky, send, shout


@pytest.fixture(autouse=True)
def inline(corvo_inline):
    return corvo_inline(app)


def test_a_task_runs_at_once_and_its_handle_has_the_result(assert_enqueued, inline):
    assert send.enqueue("ada", copies=2).result() == "ada x2"
    assert_enqueued(send, to="ada")
    assert_enqueued("letters.send", count=1)
    assert inline.results("letters.send") == ["ada x2"]


def test_a_wrong_assertion_shows_what_there_is(assert_enqueued):
    send.enqueue("ada")
    with pytest.raises(AssertionError, match='"to":"ada"'):
        assert_enqueued(send, to="bob")
    with pytest.raises(AssertionError, match="expected 2 jobs"):
        assert_enqueued(send, count=2)


def test_failures_are_retried_until_the_attempts_are_used_up(inline):
    assert flaky.enqueue(3).result() == 3
    with pytest.raises(JobFailed, match="not yet"):
        flaky.enqueue(4).result()
    assert [job.state for job in inline.jobs] == ["completed", "dead"]
    assert inline.jobs[0].errors == ["ValueError: not yet"] * 2 and inline.jobs[0].checkpoint == {"seen": 3}


def test_outcomes_chains_and_batches(inline):
    assert end.enqueue("cancel").get().state == "cancelled"
    assert end.enqueue("retry").get().state == "dead"
    with pytest.raises(Endless):
        end.enqueue("snooze")
    app.chain(send.s("eve"), shout.s())
    assert inline.results("letters.shout") == ["EVE X1"]
    app.batch([send.s("a"), send.s("b")], on_complete=add_up.s())
    assert inline.results("letters.sum") == [2]


def test_what_is_no_json_fails_as_it_would_on_a_server(inline):
    with pytest.raises(TypeError):
        send.enqueue(object())


async def coroutine():
    return (await shout.aenqueue("x")).result()


def test_in_a_loop_too():
    import asyncio

    assert asyncio.run(coroutine()) == "X"
"""
SERVER = """
from datetime import timedelta
from corvo.client.bodies import CreateScheduleBody, EnqueueBody, FailBody, FetchBody, QueuesQuery


def fetched(server, queue):
    return server.client.fetch(FetchBody(queues=[queue], worker_id="w", timeout=0))


def test_a_retry_comes_when_the_clock_says_so(corvo_server):
    client = corvo_server.client
    made = client.enqueue(EnqueueBody(queue="q", retry_base_delay="1h", retry_max_delay="1h"))
    client.fail(fetched(corvo_server, "q").job_id, FailBody(error="boom"))
    corvo_server.clock.advance(minutes=50)
    assert fetched(corvo_server, "q") is None
    corvo_server.clock.advance(minutes=20)
    assert (job := fetched(corvo_server, "q")) is not None and job.attempt == 2
    assert client.get_job(made.job_id).state == "active"


def test_a_delayed_job_and_a_lease(corvo_server):
    corvo_server.client.enqueue(EnqueueBody(queue="q", delay="2d"))
    assert fetched(corvo_server, "q") is None
    corvo_server.clock.advance(timedelta(days=2))
    first = fetched(corvo_server, "q")
    corvo_server.clock.advance(minutes=2)
    assert fetched(corvo_server, "q").job_id == first.job_id


def test_a_schedule_fires_for_each_slot(corvo_server, assert_enqueued):
    corvo_server.client.create_schedule(CreateScheduleBody(name="hourly", queue="reports", cron="0 * * * *"))
    corvo_server.clock.advance(hours=5)
    assert_enqueued("reports", count=5)


def test_each_test_begins_empty(corvo_server, assert_enqueued):
    assert corvo_server.client.queues(QueuesQuery(consistent=True)) == []
    assert corvo_server.client.schedules() == []
    assert_enqueued("q", count=0)
"""


def outcome(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "corvo.testing.plugin",
        str(folder),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_tasks_run_in_the_process_of_the_test(tmp_path: Path) -> None:
    assert "6 passed" in outcome(tmp_path, app=APP, test_inline=INLINE)


def test_a_real_server_is_empty_for_each_test_and_its_clock_moves(tmp_path: Path) -> None:
    assert "4 passed" in outcome(tmp_path, test_server=SERVER)
