"""An app for the tests of whole workers: imported by them, and by the worker processes that they start.

`CORVO_SERVER` names the server. A job writes a line to the file `SAMPLE_LOG` when it has done its work.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from corvo.worker import Context, Corvo

app = Corvo()


@dataclass
class Point:
    x: int
    y: int = 0


def note(line: str) -> None:
    with Path(os.environ["SAMPLE_LOG"]).open("a") as file:
        file.write(line + "\n")


@app.task("sample.double")
def double(n: int) -> int:
    return 2 * n


@app.task("sample.mirrored")
async def mirrored(point: Point) -> Point:
    await asyncio.sleep(0)
    return Point(point.y, point.x)


@app.task("sample.square", runs_in="process", bind=True)
def square(ctx: Context, n: int) -> dict[str, int]:
    ctx.checkpoint({"n": n}).wait()
    return {"square": n * n, "pid": os.getpid()}


@app.task("sample.killed", runs_in="process", max_retries=1)
def killed() -> None:
    os.kill(os.getpid(), 9)


@app.task("sample.endless", runs_in="process", max_retries=1, hard_time_limit=0.5)
def endless() -> None:
    while True:
        time.sleep(0.01)


@app.task("sample.steps", bind=True)
def steps(ctx: Context, count: int, step_s: float) -> dict[str, int]:
    """Looks whether it should stop, and begins where the attempt before ended."""
    begun = (ctx.saved or {"done": 0})["done"]
    for done in range(begun, count):
        if ctx.cancelled:
            return None  # type: ignore[return-value]  # handed back
        time.sleep(step_s)
        ctx.checkpoint({"done": done + 1})
    note(f"steps {ctx.job_id} from {begun}")
    return {"begun": begun}


@app.task("sample.deaf")
async def deaf(seconds: float) -> None:
    await asyncio.sleep(seconds)
