"""Ordered maps: what the state needs of a database, the map for tests, and the overlay between the two.

`KV` has two tenants, `shards.storage.Disk` and `MemoryKV`; `tests/contract/test_kv.py` runs one suite over both.
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
    """Changes that are applied but not yet on disk, seen as if they were."""

    __slots__ = ("changes", "kv")

    def __init__(self, kv: KV) -> None:
        self.kv = kv
        self.changes: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        if key in self.changes:
            return self.changes[key]
        return self.kv.get(key)

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Merges both sides. The changes are few (one turn's), so sorting those in range beats keeping order."""
        fresh = sorted(item for item in self.changes.items() if start <= item[0] < stop)
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
