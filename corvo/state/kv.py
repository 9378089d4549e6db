"""Ordered maps: the interface to a database, a map for tests, and the overlay of changes that are not on disk yet.

`KV` has two implementations, `shards.storage.leveldb.Disk` and `MemoryKV`; `tests/contract/test_kv.py` tests both.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Protocol


class KV(Protocol):
    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs with start <= key < stop, in the order of the keys."""
        ...


class MemoryKV:
    """A sorted list of keys beside a dict: for tests and for users' own tests, not for a server."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []

    def get(self, key: bytes) -> bytes | None:
        return self._values.get(key)

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key in self._keys[bisect_left(self._keys, start) : bisect_left(self._keys, stop)]:
            yield key, self._values[key]

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        for key, value in changes.items():
            at = bisect_left(self._keys, key)
            known = at < len(self._keys) and self._keys[at] == key
            if value is None:
                if known:
                    del self._keys[at], self._values[key]
                continue
            if not known:
                self._keys.insert(at, key)
            self._values[key] = value

    def __len__(self) -> int:
        return len(self._keys)


class Overlay:
    """A view of the map that includes changes which are applied but not yet on disk.

    Two layers, the newer first: the puts of the current entry, and the changes of sealed entries. A put is one dict
    store; sealing merges the layers.

    A key that is added and removed before the next write never reaches the disk, not even as a tombstone.
    """

    __slots__ = ("_gone", "_new", "changes", "kv", "puts")

    def __init__(self, kv: KV) -> None:
        self.kv = kv
        self.puts: dict[bytes, bytes | None] = {}
        self.changes: dict[bytes, bytes | None] = {}
        self._new: set[bytes] = set()  # keys that the map certainly does not hold
        self._gone: list[bytes] = []  # those that were removed since the last seal

    def put_new(self, key: bytes, value: bytes) -> None:
        """Put a key of which the caller knows that it does not exist."""
        if key not in self.changes and key not in self.puts:  # otherwise a removal may not have reached the map yet
            self._new.add(key)
        self.puts[key] = value

    def remove(self, key: bytes) -> None:
        self.puts[key] = None
        if key in self._new:
            self._gone.append(key)

    def get(self, key: bytes) -> bytes | None:
        if key in self.puts:
            return self.puts[key]
        if key in self.changes:
            return self.changes[key]
        return self.kv.get(key)

    def seal(self) -> dict[bytes, bytes | None]:
        """Merge the puts since the last seal into the changes, and return them."""
        puts, self.puts = self.puts, {}
        changes = self.changes
        changes.update(puts)
        for key in self._gone:
            if changes.get(key, b"") is None:
                del changes[key]
                self._new.discard(key)
        self._gone = []
        return puts

    def take_changes(self) -> dict[bytes, bytes | None]:
        """All sealed changes. The caller stores them before the next read."""
        changes, self.changes = self.changes, {}
        self._new.clear()
        return changes

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Merges the map and both layers. The changes of one turn are few, so they are sorted here, not kept sorted."""
        found = {key: value for key, value in self.changes.items() if start <= key < stop}
        found.update((key, value) for key, value in self.puts.items() if start <= key < stop)
        fresh = sorted(found.items())
        at = 0
        for key, value in self.kv.scan(start, stop):
            while at < len(fresh) and fresh[at][0] < key:
                newer = fresh[at]
                if newer[1] is not None:
                    yield newer[0], newer[1]
                at += 1
            if at < len(fresh) and fresh[at][0] == key:
                newer = fresh[at]
                if newer[1] is not None:
                    yield key, newer[1]
                at += 1
            else:
                yield key, value
        for key, changed in fresh[at:]:
            if changed is not None:
                yield key, changed
