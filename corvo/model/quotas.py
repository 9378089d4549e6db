"""What a namespace may store: its quotas, and how much of them one shard may use. Pure.

Each shard counts its own jobs exactly. What the other shards hold is told with each enqueue by the gateway, which asks
them once a second. So a namespace on one shard never exceeds its quotas. Over several shards it exceeds them at most by
what the others accept until the next look.
"""

import msgspec

from corvo.model.access_records import Quotas
from corvo.model.errors import Refusal
from corvo.model.job import Count


class StoredAmounts(msgspec.Struct, array_like=True, frozen=True):
    """What a namespace has, on one shard or on all."""

    jobs: int = 0
    payload_bytes: int = 0
    queues: int = 0

    def plus(self, other: "StoredAmounts") -> "StoredAmounts":
        return StoredAmounts(
            self.jobs + other.jobs, self.payload_bytes + other.payload_bytes, self.queues + other.queues
        )


class Room(msgspec.Struct, array_like=True, frozen=True):
    """Travels inside operations: add a field last, with a default."""

    quotas: Quotas
    jobs: Count = 0  # on the other shards
    payload_bytes: Count = 0
    queues: Count = 0

    def require(self, here: StoredAmounts, more: StoredAmounts) -> None:
        """Refuse what would be too much. `here` is what this shard holds. A new job needs all three."""
        elsewhere = StoredAmounts(self.jobs, self.payload_bytes, self.queues)
        after = here.plus(elsewhere).plus(more)
        for what, used, added, limit in (
            ("jobs", after.jobs, more.jobs, self.quotas.jobs_max),
            ("bytes of payload", after.payload_bytes, more.payload_bytes, self.quotas.payload_bytes_max),
            ("queues", after.queues, more.queues, self.quotas.queues_max),
        ):
            if limit and added and used > limit:
                raise Refusal(
                    "QUOTA_EXCEEDED",
                    f"this namespace may store {limit} {what} and has {used - added}; {added} more are too many",
                )
