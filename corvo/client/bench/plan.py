"""What a benchmark is to do, with everything decided. Pure."""

from typing import Literal

import msgspec

BATCH_MAX = 512  # jobs of one fetch, at most
TIME_S_MAX = 3_600.0  # whatever was asked for, it ends then

Mode = Literal["steady", "burst", "latency"]
Protocol = Literal["stream", "http"]


class BadPlan(ValueError):
    """What does not go together, and what to do, in a sentence."""


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    mode: Mode
    protocol: Protocol
    connections: int
    batch: int
    queues: int
    payload_bytes: int
    jobs: int | None  # it ends when so many are done; None: by time
    seconds: float
    rate: float | None  # jobs a second in latency mode

    @property
    def ahead(self) -> int:
        """Frames under way on one connection. HTTP has one request at a time."""
        if self.protocol == "http":
            return 1
        return 2 if self.batch > 1 else 8


def make_plan(
    mode: Mode,
    protocol: Protocol,
    connections: int,
    batch: int | None,
    queues: int,
    payload_bytes: int,
    jobs: int | None,
    seconds: float | None,
    rate: float | None,
) -> BenchPlan:
    """None stands for what was not given."""
    if rate is not None and mode != "latency":
        raise BadPlan(f"--rate is for --mode latency; {mode} goes as fast as it can")
    if mode == "latency":
        if (batch or 1) != 1:
            raise BadPlan("--mode latency sends job by job; leave --batch away")
        rate = rate or 100.0
        seconds = seconds or (10.0 if jobs is None else jobs / rate)
        jobs = max(int(rate * seconds), 1) if jobs is None else min(jobs, max(int(rate * seconds), 1))
    elif mode == "burst":
        if seconds is not None:
            raise BadPlan("--mode burst ends when all its jobs are done; give --jobs instead of --seconds")
        jobs = jobs or 20_000
    return BenchPlan(
        mode=mode,
        protocol=protocol,
        connections=connections,
        batch=1 if mode == "latency" else batch or 50,
        queues=queues,
        payload_bytes=payload_bytes,
        jobs=jobs,
        seconds=min(seconds or (10.0 if jobs is None else TIME_S_MAX), TIME_S_MAX),
        rate=rate,
    )
