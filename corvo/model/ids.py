"""Identifiers: minted before the log, so that a repeated request names the same job.

s03_job_18a1f0c2d3e4f5a6 0a1b2c3d4e      (without the space)
 │       │                └ 40 random bits of this minter
 │       └ nanoseconds since 1970, strictly increasing in one minter: ids sort by age
 └ the shard that the job was created on

An id of a namespace other than `default` ends with it: `…_acme`.
"""

from collections.abc import Callable

from corvo.model.namespaces import DEFAULT, id_ending


class MintClock:
    """A clock that never shows the same time twice. Not thread-safe: one per event loop."""

    __slots__ = ("_clock_ns", "_last_ns")

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._last_ns = 0

    def next_ns(self) -> int:
        now = self._clock_ns()
        last = self._last_ns
        self._last_ns = now = now if now > last else last + 1
        return now


class Minter:
    """Makes the ids of one namespace."""

    def __init__(self, clock_ns: Callable[[], int] | MintClock, entropy: int, namespace: str = DEFAULT) -> None:
        self._clock = clock_ns if isinstance(clock_ns, MintClock) else MintClock(clock_ns)
        self._moment = self._clock.next_ns
        self._entropy = entropy & 0xFFFFFFFFFF
        self._suffix = f"{self._entropy:010x}{id_ending(namespace)}"

    def within(self, namespace: str) -> "Minter":
        """The same for another namespace: their ids are unique among each other."""
        return Minter(self._clock, self._entropy, namespace)

    def job_id(self, shard: int) -> str:
        return f"s{shard:02d}_job_{self._moment():016x}{self._suffix}"

    def batch_id(self, shard: int) -> str:
        return f"s{shard:02d}_batch_{self._moment():016x}{self._suffix}"

    def schedule_id(self, shard: int) -> str:
        return f"s{shard:02d}_sched_{self._moment():016x}{self._suffix}"

    def bulk_id(self) -> str:
        return f"bulk_{self._moment():016x}{self._suffix}"

    def claim_id(self) -> int:
        """Identifies one request, so that its repetition is recognised. 63 bits: SQLite and msgpack can hold it."""
        return ((self._moment() << 20) ^ self._entropy) & 0x7FFFFFFFFFFFFFFF
