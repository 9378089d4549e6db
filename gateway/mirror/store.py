"""The interface of a store of read databases: SQLite (`sqlite_store.py`) or PostgreSQL (`postgres_store.py`).

A store has at most one published database, which readers see, and at most one being built. Every method may raise one
of the store's `faults`; `remedy` says what to do then.
"""

from collections.abc import Sequence
from typing import Generic, Literal, Protocol, TypeVar

from gateway.mirror.shard_writes import Cursor, ShardWrite

# end: end the process, to be restarted. reopen: try again later. rebuild: the published database is unusable.
Remedy = Literal["end", "reopen", "rebuild"]


class UntrustedDatabase(Exception):
    """The existing database cannot be trusted. The message is the reason, for the log."""


class AbsentDatabase(UntrustedDatabase):
    """There is none: the first start, or somebody removed it."""


class Database(Protocol):
    """One database, as seen by its only writer."""

    @property
    def generation(self) -> str: ...

    def cursors(self) -> list[tuple[int, int, str | None, int]]:
        """Rows of (shard, applied index, caught up at, rows in total)."""

    def write(self, turns: Sequence[ShardWrite]) -> None:
        """Writes all turns in one transaction."""

    def put_cursors(self, cursors: Sequence[Cursor]) -> None: ...

    def index(self, budget_ms: float) -> bool:
        """Updates the indexes that are not written with the jobs, for about `budget_ms`. True if work is left."""

    def vouch(self, shards: Sequence[int], now: int) -> None:
        """A heartbeat: records that these shards had no changes up to now."""

    def fall_behind(self, shard: int) -> None:
        """Marks the shard as not followed: it is unreachable, or there is a gap after the cursor."""

    def close(self) -> None: ...


D = TypeVar("D", bound=Database)


class Store(Protocol, Generic[D]):
    @property
    def name(self) -> str:
        """The name for the log, without secrets."""

    @property
    def faults(self) -> tuple[type[Exception], ...]: ...

    def open_trusted(self) -> D:
        """Opens the published database for writing; raises `UntrustedDatabase`."""

    def begin(self, now: int) -> D:
        """Creates an empty database that readers do not see. Removes what earlier attempts left."""

    def remove_published(self) -> None:
        """Removes the published database: no answer is better than a wrong one."""

    def publish(self, building: D, now: int) -> None:
        """New reads use this database from now on; running reads finish on the former one."""

    def retire(self, former: D) -> None:
        """Removes a formerly published database once no reader can be about to open it."""

    def abandon(self, building: D) -> None:
        """Removes an unfinished build."""

    def look(self, published: D) -> None:
        """Called once a second: raises a fault if the published database was replaced or is damaged. Also cleans up."""

    def close_clean(self, published: D) -> None:
        """Closes the database at a clean shutdown."""

    def release(self) -> None:
        """Releases what the store holds apart from its databases."""

    def remedy(self, error: Exception) -> Remedy: ...
