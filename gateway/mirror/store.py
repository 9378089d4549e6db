"""What `follow.py` needs of a store of read databases: SQLite (`sqlite_store.py`) or PostgreSQL (`postgres_store.py`).

A store has at most one published database, which readers see, and at most one that is being built. Every method may
raise one of the store's `faults`; `remedy` says what to do then.
"""

from collections.abc import Sequence
from typing import Generic, Literal, Protocol, TypeVar

from gateway.mirror.shard_writes import Cursor, ShardWrite

# end: let the process end and be started again. reopen: try again in a while. rebuild: what is published is no good.
Remedy = Literal["end", "reopen", "rebuild"]


class UntrustedDatabase(Exception):
    """What is there cannot be believed; the reason is a few words for the log."""


class Database(Protocol):
    """One database, as its only writer sees it."""

    @property
    def generation(self) -> str: ...

    def cursors(self) -> list[tuple[int, int, str | None, int]]:
        """(shard, applied index, caught up at, rows in total)."""

    def write(self, turns: Sequence[ShardWrite]) -> None:
        """Everything that the turns hold, or nothing of it."""

    def put_cursors(self, cursors: Sequence[Cursor]) -> None: ...

    def index(self, budget_ms: float) -> bool:
        """Bring what is not written with the jobs up to date, for about so long. Whether more is left to do."""

    def vouch(self, shards: Sequence[int], now: int) -> None:
        """A sign of life: these shards have had nothing new up to now."""

    def fall_behind(self, shard: int) -> None:
        """The shard is out of reach, or has forgotten what came after our cursor: stop claiming to follow it."""

    def close(self) -> None: ...


D = TypeVar("D", bound=Database)


class Store(Protocol, Generic[D]):
    @property
    def name(self) -> str:
        """For the log: no secrets."""

    @property
    def faults(self) -> tuple[type[Exception], ...]: ...

    def open_trusted(self) -> D:
        """What is published, ready to be written on; refused as `Untrusted`."""

    def begin(self, now: int) -> D:
        """An empty database that readers do not see. Nothing is left of earlier attempts."""

    def remove_published(self) -> None:
        """No answer is better than a wrong one."""

    def publish(self, building: D, now: int) -> None:
        """From here on readers find this one; those that are reading the former finish what they read."""

    def retire(self, former: D) -> None:
        """What was published before goes, when nobody can be about to open it any more."""

    def abandon(self, building: D) -> None:
        """Nothing is left of it."""

    def look(self, published: D) -> None:
        """Once a second: raises a fault when what is published is no longer ours or sound. Also tidies up."""

    def close_clean(self, published: D) -> None:
        """At an ordered stop."""

    def release(self) -> None:
        """Let go of whatever it holds beside its databases."""

    def remedy(self, error: Exception) -> Remedy: ...
