"""LevelDB as the ordered map of one replica. The only module that knows plyvel.

What the package does by default and this module forbids (each was measured, see `docs/explanation/storage.md`):
creating an empty database where data should be; unsynced writes; believing damaged blocks; going on after a failed
write, which acknowledges writes that are already lost. After any failed write the process must end: `DiskFailed`
is never handled, and a handle that failed once fails for ever. Damage is told as `Corrupt`, like that of the log.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import plyvel

from corvo.model.errors import Corrupt
from corvo.runtime.process import sync_directory
from corvo.state import keys
from shards.storage.wal_check import check_tails

# The more is gathered, the less is merged; but it is memory, twice, in every shard, and the pauses grow when a table is
# written out.
_WRITE_BUFFER_BYTES = 8 * 1024 * 1024
_CACHE_BYTES = 16 * 1024 * 1024
_OPEN_FILES_MAX = 256


class DiskFailed(Exception):
    """A write did not reach the disk. Nothing more may be written through this handle: end the process."""


class Disk:
    def __init__(self, path: Path, identity: bytes | None, is_synced: bool) -> None:
        """Open what `create` made. A directory that holds another replica's data, or none, is refused.

        Without identity it is one that is being filled: it is given its identity when it is whole.
        """
        self._sync = is_synced
        self._failure = ""
        check_tails(path)
        try:
            self._db = _open(path, create=False)
        except (plyvel.Error, OSError) as error:
            raise Corrupt(f"{path} cannot be opened: {_text(error)}") from error
        found = self.get(keys.IDENTITY)
        if found != identity:
            self._db.close()
            raise Corrupt(f"{path} belongs to {found!r}, not to {identity!r}")

    @staticmethod
    def create(path: Path, identity: bytes | None) -> None:
        """Make the database of a replica that never lived. Interrupted at any point, it can be called again."""
        draft = path.with_name(path.name + ".new")
        if draft.exists():
            _remove_draft(draft)
        db = _open(draft, create=True)
        if identity is not None:
            db.put(keys.IDENTITY, identity, sync=True)
        db.close()
        draft.rename(path)
        sync_directory(path.parent)

    def get(self, key: bytes) -> bytes | None:
        return _get(self._db, key)

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        return _scan(self._db, start, stop)

    def estimated_bytes(self, ranges: Iterable[tuple[bytes, bytes]]) -> int:
        """Of the tables in these ranges. What was written last, and not yet to a table, is not counted."""
        return sum(self._db.approximate_size(start, stop) for start, stop in ranges)

    def frozen(self) -> "Frozen":
        """What is on disk now. Close it soon: until then LevelDB keeps all that is overwritten and deleted."""
        return Frozen(self._db.snapshot())

    def write(self, *parts: Mapping[bytes, bytes | None]) -> None:
        """One batch, whole or not at all, on disk when this returns. Later parts win over earlier ones."""
        if self._failure:
            raise DiskFailed(f"an earlier write failed: {self._failure}")
        batch = self._db.write_batch(sync=self._sync)
        put, delete = batch.put, batch.delete
        for part in parts:
            for key, value in part.items():
                if value is None:
                    delete(key)
                else:
                    put(key, value)
        try:
            batch.write()
        except Exception as error:  # whatever LevelDB says, this handle is finished
            self._failure = _text(error)
            if isinstance(error, plyvel.CorruptionError):  # met while it rewrote a table: starting again does not help
                raise Corrupt(f"a table is damaged: {self._failure}") from error
            raise DiskFailed(self._failure) from error

    def close(self) -> None:
        self._db.close()


class Frozen:
    """A view that later writes do not change. It ends with the disk that gave it, at the latest."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot

    def get(self, key: bytes) -> bytes | None:
        return _get(self._snapshot, key)

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        return _scan(self._snapshot, start, stop)

    def close(self) -> None:
        self._snapshot.close()


def _get(source: Any, key: bytes) -> bytes | None:
    try:
        value: bytes | None = source.get(key, verify_checksums=True)
    except plyvel.Error as error:
        raise Corrupt(f"{key!r} cannot be read: {_text(error)}") from error
    return value


def _scan(source: Any, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
    try:
        with source.iterator(start=start, stop=stop, verify_checksums=True) as pairs:
            yield from pairs
    except plyvel.Error as error:
        raise Corrupt(f"{start!r} to {stop!r} cannot be read: {_text(error)}") from error


def _open(path: Path, create: bool) -> Any:
    return plyvel.DB(
        str(path),
        create_if_missing=create,
        error_if_exists=create,
        paranoid_checks=True,
        write_buffer_size=_WRITE_BUFFER_BYTES,
        lru_cache_size=_CACHE_BYTES,
        max_open_files=_OPEN_FILES_MAX,
        bloom_filter_bits=10,
        compression=None,  # Snappy took more of a shard's time than the operations themselves
    )


def _text(error: Exception) -> str:
    """plyvel's messages are bytes."""
    message = error.args[0] if error.args else error
    return message.decode(errors="replace") if isinstance(message, bytes) else str(error)


def _remove_draft(path: Path) -> None:
    for file in path.iterdir():
        file.unlink()
    path.rmdir()
