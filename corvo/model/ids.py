"""Identifiers: minted before the log, so that a repeated request names the same job.

s03_job_18a1f0c2d3e4f5a6 0a1b2c3d4e      (without the space)
 │       │                └ 40 random bits of this minter
 │       └ nanoseconds since 1970, strictly increasing in one minter: ids sort by age
 └ the shard that the job was created on
"""

from collections.abc import Callable


class Minter:
    """Makes ids. Remembers the last timestamp, so that two ids never share one. Not thread-safe: one per event loop."""

    def __init__(self, clock_ns: Callable[[], int], entropy: int) -> None:
        self._clock_ns = clock_ns
        self._suffix = f"{entropy & 0xFFFFFFFFFF:010x}"
        self._last_ns = 0

    def _moment(self) -> int:
        now = self._clock_ns()
        last = self._last_ns
        self._last_ns = now = now if now > last else last + 1
        return now

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
        return ((self._moment() << 20) ^ int(self._suffix, 16)) & 0x7FFFFFFFFFFFFFFF
