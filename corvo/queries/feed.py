"""What the mirror asks of a shard: changes after a point, or the whole state piece by piece."""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Query
from corvo.model.job import Count, SpanMs, Worker


class FeedBatch(msgspec.Struct, array_like=True):
    """Records by key, newest value each; None means deleted. Applying a batch twice changes nothing.

    `is_gap`: the shard no longer knows what changed after the point asked for; only a scan can help.
    """

    upto: int
    records: list[tuple[bytes, bytes | None]]
    is_gap: bool = False
    presence: list[Worker] | None = None  # all that wait at this shard; None: as before. Gone with the process


class Pull(Query, tag=1010):
    """Changes after an index; the answer waits until there are some. The index is also the mirror's receipt:
    everything up to it is safe in read.db and need not be remembered."""

    after: Count
    wait_ms: SpanMs
    records_max: Count

    result: ClassVar[Any] = FeedBatch


class ScanPiece(msgspec.Struct, array_like=True):
    """A stretch of the state in the order of its keys. `as_of` is the index that the first piece is no older than."""

    as_of: int
    records: list[tuple[bytes, bytes]]
    next_key: bytes  # empty: this was the last piece


class Scan(Query, tag=1011):
    start: bytes
    records_max: Count

    result: ClassVar[Any] = ScanPiece
