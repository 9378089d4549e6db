"""Tasks and their terms: what is sent, what is refused, and that type checkers see the parameters."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from corvo.client.worker import Context, Corvo, current
from corvo.client.worker.outcomes import milliseconds
from tests.tidy.house import ROOT

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

CALL_SITES = """
from typing import Any
from corvo.worker import Context, Corvo
app = Corvo()

@app.task("a", max_retries=5, unique=True)
def send(to: str, count: int = 1) -> bool: return True

@app.task("b", bind=True)
async def bound(ctx: Context, to: str) -> int: return ctx.attempt

@app.task("c")
def anything(payload: Any) -> None: ...

reveal_type(send("a"))
reveal_type(send.enqueue("a", count=2).id)
send.delay("a")
bound.enqueue("a")
bound.configure(priority="high").enqueue("a")
anything.enqueue({})
app.chain(send.s("a"), bound.s())
send.enqueue(5)  # wrong
send.enqueue("a", "b")  # wrong
send.delay()  # wrong
bound.enqueue(to=5)  # wrong
bound.s(1)  # wrong
send.schedule(after="5m").enqueue(1)  # wrong
app.task("d", max_retry=5)  # wrong
"""


@pytest.fixture
def app() -> Corvo:
    return Corvo("http://127.0.0.1:1")


def test_call_sites_are_type_checked(tmp_path: Path) -> None:
    program = tmp_path / "call_sites.py"
    program.write_text(CALL_SITES)
    command = [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "--no-error-summary", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)

    lines = CALL_SITES.splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    told = [line.split(":", 3) for line in done.stdout.splitlines() if line.startswith(str(program))]
    assert {int(number) for _, number, kind, _ in told if kind.strip() == "error"} == wrong, done.stdout
    notes = [text for _, _, kind, text in told if kind.strip() == "note" and "Revealed" in text]
    assert ["bool" in notes[0], "str" in notes[1]] == [True, True]


def test_terms_become_the_body_of_the_enqueue(app: Corvo) -> None:
    @app.task(
        "emails.send", max_retries=5, retry_base_delay="10s", unique="mail-{to}", unique_period=timedelta(hours=2)
    )
    def send(to: str) -> None: ...

    body = send.configure(priority="high", tags={"team": "a"}, expire_after="1h").s("a@b.c").body()

    assert (body.queue, body.max_retries, body.retry_base_delay_ms) == ("emails.send", 5, 10_000)
    assert (body.unique_key, body.unique_period) == ("mail-a@b.c", 7200)
    assert (body.priority, body.tags, body.expire_after_ms) == ("high", {"team": "a"}, 3_600_000)


def test_unique_arguments_have_one_key_in_whatever_order(app: Corvo) -> None:
    @app.task("a", unique=True)
    def one(x: int, y: dict[str, int] | None = None) -> None: ...

    @app.task("b", unique=lambda x: f"x-{x}")
    def two(x: int) -> None: ...

    same = {one.s(y={"a": 1, "b": 2}, x=1).body().unique_key, one.s(1, {"b": 2, "a": 1}).body().unique_key}
    assert len(same) == 1
    assert one.s(2).body().unique_key not in same
    assert two.s(7).body().unique_key == "x-7"


def test_a_task_is_scheduled_at_a_time_or_after_one(app: Corvo) -> None:
    @app.task("a")
    def send(to: str) -> None: ...

    assert send.schedule(at=NOON).s("x").body().scheduled_at == "2030-01-01T12:00:00+00:00"
    assert send.schedule(after="1h30m").s("x").body().delay_ms == 5_400_000
    with pytest.raises(TypeError, match="either at="):
        send.schedule()
    with pytest.raises(ValueError, match="no time zone"):
        send.schedule(at=NOON.replace(tzinfo=None)).s("x").body()


@pytest.mark.parametrize(
    ("duration", "ms"),
    [(1.5, 1500), (timedelta(minutes=2), 120_000), ("90s", 90_000), ("1h30m", 5_400_000), ("0.5s", 500), ("20ms", 20)],
)
def test_durations(duration: Any, ms: int) -> None:
    assert milliseconds(duration) == ms


@pytest.mark.parametrize("duration", ["", "90", "ten", "5x", "s", -1, float("inf"), float("nan")])
def test_what_is_no_duration(duration: Any) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        milliseconds(duration)


def test_a_call_stays_a_call(app: Corvo) -> None:
    @app.task("a")
    def double(n: int) -> int:
        return 2 * n

    @app.task("b", bind=True)
    def attempts(ctx: Context, n: int) -> tuple[int, bool]:
        ctx.progress(1, 2).wait()
        return ctx.attempt + n, current() is ctx

    assert (double(4), attempts(1)) == (8, (2, True))
    with pytest.raises(LookupError):
        current()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"runs_in": "loop"}, "a def cannot run in a loop"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"time_limit": -1.0}, "time_limit is -1.0"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once(app: Corvo, options: dict[str, Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):

        @app.task("a", **options)
        def work() -> None: ...


def test_a_queue_has_one_handler(app: Corvo) -> None:
    app.register("a", lambda job: None)

    with pytest.raises(ValueError, match="has a handler already"):
        app.register("a", lambda job: None)


def test_a_middleware_yields(app: Corvo) -> None:
    with pytest.raises(TypeError, match="no generator function"):
        app.middleware(lambda ctx: None)  # type: ignore[arg-type,return-value]


def test_a_checkpoint_is_an_object(app: Corvo) -> None:
    @app.task("a", bind=True)
    def work(ctx: Context) -> None:
        ctx.checkpoint(5)

    with pytest.raises(TypeError, match="a checkpoint is an object"):
        work()
