"""The app whose worker is hurt. Each handler writes what it did, so that the programs can compare it with the server.

`CHAOS_LOG` names the file, `CHAOS_QUEUES` is the beginning of the names of the queues.
"""

import asyncio
import os

from corvo.worker import Context, Corvo

app = Corvo()
QUEUES = os.environ.get("CHAOS_QUEUES", "chaos")
_log = os.open(os.environ.get("CHAOS_LOG", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def write(ctx: Context, what: str, number: int = 0) -> None:
    """One write is one line, also from several threads. It survives a kill of this process."""
    os.write(_log, f"{what} {ctx.job_id} {ctx.job.lease_token} {number}\n".encode())


@app.task(f"{QUEUES}.loop", bind=True)
async def in_loop(ctx: Context, n: int) -> int:
    write(ctx, "begun")
    await asyncio.sleep(0.002)
    write(ctx, "done")
    return n + 1


@app.task(f"{QUEUES}.thread", bind=True)
def in_thread(ctx: Context, n: int) -> int:
    write(ctx, "begun")
    write(ctx, "done")
    return n + 1


@app.task(f"{QUEUES}.steps", bind=True)
async def steps(ctx: Context, count: int) -> int | None:
    """Saves each step, and stops when it is asked to."""
    begun = (ctx.saved or {"step": 0})["step"]
    write(ctx, "begun", begun)
    for step in range(begun, count):
        if ctx.cancelled:
            return None
        await asyncio.sleep(0.02)
        ctx.checkpoint({"step": step + 1})
        write(ctx, "step", step + 1)
    write(ctx, "done", begun)
    return count


@app.task(f"{QUEUES}.deaf", bind=True)
async def deaf(ctx: Context, seconds: float) -> None:
    """Does not look whether it should stop."""
    write(ctx, "begun")
    await asyncio.sleep(seconds)
    write(ctx, "done")
