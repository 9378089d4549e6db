"""What every ordered map must do: one suite, all tenants.

A tenant here has `get`, `scan` and `write(changes)`. To add one: write a factory that takes a directory and yields the
map, and put it into TENANTS.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.state import keys
from corvo.state.kv import MemoryKV

Factory = Callable[[Path], AbstractContextManager[Any]]


@contextmanager
def memory(directory: Path) -> Iterator[Any]:
    yield MemoryKV()


@contextmanager
def leveldb(directory: Path) -> Iterator[Any]:
    pytest.importorskip("plyvel")
    storage = pytest.importorskip("shards.storage.leveldb")
    storage.Disk.create(directory / "db", b"contract")
    disk = storage.Disk(directory / "db", b"contract", False)
    try:
        yield disk
    finally:
        disk.close()


TENANTS: dict[str, Factory] = {"memory": memory, "leveldb": leveldb}
OWN = {keys.IDENTITY}  # what a tenant may keep for itself

small_keys = st.binary(min_size=1, max_size=3)
batches = st.lists(st.dictionaries(small_keys, st.none() | st.binary(max_size=3), max_size=6), max_size=8)


@pytest.fixture(params=TENANTS)
def tenant(request: pytest.FixtureRequest) -> Factory:
    return TENANTS[request.param]


@pytest.fixture
def kv(tenant: Factory, tmp_path: Path) -> Iterator[Any]:
    with tenant(tmp_path) as opened:
        yield opened


def everything(kv: Any, start: bytes = b"", stop: bytes = b"\xff" * 8) -> list[tuple[bytes, bytes]]:
    return [pair for pair in kv.scan(start, stop) if pair[0] not in OWN]


@pytest.mark.parametrize("tenant_name", TENANTS)
@settings(max_examples=max(15, settings().max_examples // 4))  # each example opens a database
@given(written=batches, start=small_keys, stop=small_keys)
def test_a_map_is_a_sorted_dictionary(tenant_name: str, written: list[dict], start: bytes, stop: bytes) -> None:
    model: dict[bytes, bytes] = {}

    with TemporaryDirectory() as directory, TENANTS[tenant_name](Path(directory)) as kv:
        for changes in written:
            kv.write(changes)
            for key, value in changes.items():
                if value is None:
                    model.pop(key, None)
                else:
                    model[key] = value

        assert everything(kv) == sorted(model.items())
        assert everything(kv, start, stop) == sorted(pair for pair in model.items() if start <= pair[0] < stop)
        assert all(kv.get(key) == model.get(key) for changes in written for key in changes)


def test_what_was_never_written_is_none(kv: Any) -> None:
    assert kv.get(b"a") is None
    assert everything(kv) == []


def test_an_empty_value_is_a_value(kv: Any) -> None:
    kv.write({b"a": b""})

    assert kv.get(b"a") == b""
    assert everything(kv) == [(b"a", b"")]


def test_the_start_of_a_scan_is_within_and_the_stop_without(kv: Any) -> None:
    kv.write({b"a": b"1", b"b": b"2", b"c": b"3"})

    assert everything(kv, b"a", b"c") == [(b"a", b"1"), (b"b", b"2")]


@pytest.mark.parametrize(("start", "stop"), [(b"c", b"a"), (b"b", b"b")])
def test_a_range_that_holds_nothing_gives_nothing(kv: Any, start: bytes, stop: bytes) -> None:
    kv.write({b"a": b"1", b"b": b"2", b"c": b"3"})

    assert everything(kv, start, stop) == []


def test_keys_sort_as_unsigned_bytes(kv: Any) -> None:
    kv.write({b"\xff": b"", b"\x00a": b"", b"\x7f": b"", b"\x80": b"", b"a\x00": b"", b"a": b""})

    assert [key for key, _ in everything(kv)] == [b"\x00a", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff"]


def test_deleting_what_is_not_there_is_no_error(kv: Any) -> None:
    kv.write({b"a": None})

    assert everything(kv) == []


def test_a_deleted_key_is_gone_and_may_come_back(kv: Any) -> None:
    kv.write({b"a": b"1", b"b": b"2"})
    kv.write({b"a": None})
    assert everything(kv) == [(b"b", b"2")]

    kv.write({b"a": b"3"})

    assert kv.get(b"a") == b"3"


def test_an_empty_batch_changes_nothing(kv: Any) -> None:
    kv.write({b"a": b"1"})

    kv.write({})

    assert everything(kv) == [(b"a", b"1")]


def test_a_scan_may_be_left_in_the_middle(kv: Any) -> None:
    kv.write({b"%03d" % number: b"" for number in range(100)})

    first = next(iter(kv.scan(b"0", b"9")))

    assert first == (b"000", b"")
    kv.write({b"000": None})
    assert next(iter(kv.scan(b"0", b"9"))) == (b"001", b"")


def test_values_may_be_large(kv: Any) -> None:
    kv.write({b"a": b"x" * 300_000})

    assert kv.get(b"a") == b"x" * 300_000
