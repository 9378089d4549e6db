"""Queries of the mirror: changes after an index, or the whole state in pieces."""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Query
from corvo.model.job import Count, SpanMs, Worker


class FeedBatch(msgspec.Struct, array_like=True):
    """Records by key, newest value each; None means deleted. Applying a batch twice changes nothing.

    `is_gap`: the shard no longer has the changes after that index; the mirror must scan.
    """

    upto: int
    records: list[tuple[bytes, bytes | None]]
    is_gap: bool = False
    presence: list[Worker] | None = None  # workers that wait at this shard; None: unchanged. Not replicated


class Pull(Query, tag=1010):
    """Changes after an index; the answer waits until there are some. The index also confirms that read.db holds
    everything up to it, so that the shard can drop it."""

    after: Count
    wait_ms: SpanMs
    records_max: Count

    result: ClassVar[Any] = FeedBatch


class ScanPiece(msgspec.Struct, array_like=True):
    """A piece of the state, in key order. `as_of` is a log index that the first piece includes."""

    as_of: int
    records: list[tuple[bytes, bytes]]
    next_key: bytes  # empty: this was the last piece


class Scan(Query, tag=1011):
    start: bytes
    records_max: Count

    result: ClassVar[Any] = ScanPiece
