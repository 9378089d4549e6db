"""Identifiers: minted before the log, so that a repeated request names the same job.

s03_job_18a1f0c2d3e4f5a6 0a1b2c3d4e      (without the space)
 │       │                └ 40 random bits of this minter
 │       └ nanoseconds since 1970, strictly increasing in one minter: ids sort by age
 └ the shard that the job was created on

An id of a namespace other than `default` ends with it: `…_acme`.

A client that sends an `Idempotency-Key` gets ids that follow from it: its request names the same jobs however often it
is sent, to whichever gateway.
"""

import re
from collections.abc import Callable
from hashlib import blake2b

from corvo.model.errors import invalid
from corvo.model.namespaces import DEFAULT, id_ending

KEY_HEADER = "Idempotency-Key"
_KEY = re.compile(rb"[A-Za-z0-9._-]{16,128}")
_UUID7 = re.compile(rb"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


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


def repeatable_minter(key: bytes, *asked: bytes, namespace: str = DEFAULT) -> Minter:
    """Makes the same ids for the same key and request. `asked` is what the key stands for: method, path and body. So a
    key that is used again for another request names other jobs. The ids of a UUID of version 7 sort by its time."""
    key = key.removeprefix(b'"').removesuffix(b'"')  # as a structured field, it has quotes
    if _KEY.fullmatch(key) is None:
        raise invalid(KEY_HEADER, "16 to 128 letters, digits and `._-` are accepted; send a new UUID with each request")
    digest = blake2b(key, digest_size=16)
    for part in asked:
        digest.update(b"%d:%b" % (len(part), part))
    number = int.from_bytes(digest.digest())
    timed = _UUID7.fullmatch(key)
    moment = int(timed[1] + timed[2], 16) * 1_000_000 + (number >> 64) % 1_000_000 if timed else number >> 64
    return Minter(lambda: moment, number & 0xFFFFFFFFFF, namespace)
