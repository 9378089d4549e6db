"""One connection to a server, whichever protocol it speaks: turns out, outcomes in."""

import ssl
from typing import NamedTuple, Protocol

import msgspec

ANSWER_S_MAX = 30.0  # beyond the time that a fetch may wait; then the connection counts as lost
CONNECT_S_MAX = 10.0


class Lost(Exception):
    """The connection broke, or no answer came. Says why."""


class Target(NamedTuple):
    """The server under load, and what every connection to it needs."""

    url: str
    secure: ssl.SSLContext | None = None  # None: no TLS
    headers: dict[str, str] = {}


class ClaimedJob(msgspec.Struct):
    job_id: str
    lease_token: int
    payload: msgspec.Raw = msgspec.Raw(b"null")


class RoundTrip(NamedTuple):
    """Enqueue so many, ack these, then fetch so many."""

    queues: tuple[str, ...]
    new_jobs: tuple[bytes, ...] = ()  # each as JSON, ready to be sent
    acks: list[ClaimedJob] = []
    fetch: int = 0
    wait_ms: int = 0


class BenchOutcome(NamedTuple):
    enqueued: int = 0
    acked: int = 0
    jobs: list[ClaimedJob] = []
    refusals: list[str] = []  # codes, one for each job or request that was refused
    retry_after_s: float = 0.0


class BenchLink(Protocol):
    async def turn(self, turn: RoundTrip) -> BenchOutcome: ...

    async def close(self) -> None: ...
