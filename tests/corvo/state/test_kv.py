"""The overlay: what is not yet stored is seen as if it were. (`MemoryKV` has its suite in tests/contract.)"""

from hypothesis import given
from hypothesis import strategies as st

from corvo.state.kv import MemoryKV, Overlay

small_keys = st.binary(max_size=2)
changes = st.dictionaries(small_keys, st.none() | st.binary(max_size=2), max_size=12)


def plain(*layers: dict[bytes, bytes | None]) -> dict[bytes, bytes]:
    merged: dict[bytes, bytes | None] = {}
    for layer in layers:
        merged |= layer
    return {key: value for key, value in merged.items() if value is not None}


def overlay_of(stored: dict[bytes, bytes | None], fresh: dict[bytes, bytes | None]) -> Overlay:
    kv = MemoryKV()
    kv.write(stored)
    overlay = Overlay(kv)
    overlay.changes.update(fresh)
    return overlay


@given(changes, changes, small_keys, small_keys)
def test_an_overlay_reads_as_the_map_with_its_changes_written(
    stored: dict, fresh: dict, start: bytes, stop: bytes
) -> None:
    model = plain(stored, fresh)

    overlay = overlay_of(stored, fresh)

    assert list(overlay.scan(start, stop)) == sorted(pair for pair in model.items() if start <= pair[0] < stop)
    for key in {*stored, *fresh, start}:
        assert overlay.get(key) == model.get(key)


def test_a_deletion_hides_what_is_stored_without_touching_it() -> None:
    overlay = overlay_of({b"a": b"1", b"b": b"2"}, {b"a": None})

    assert overlay.get(b"a") is None
    assert list(overlay.scan(b"", b"z")) == [(b"b", b"2")]
    assert overlay.kv.get(b"a") == b"1"


def test_a_newer_value_stands_in_place_of_the_stored_one() -> None:
    overlay = overlay_of({b"a": b"1", b"c": b"3"}, {b"a": b"new", b"b": b"2"})

    assert list(overlay.scan(b"", b"z")) == [(b"a", b"new"), (b"b", b"2"), (b"c", b"3")]


def test_an_empty_value_is_a_value() -> None:
    overlay = overlay_of({b"a": b"1"}, {b"a": b""})

    assert overlay.get(b"a") == b""
    assert list(overlay.scan(b"", b"z")) == [(b"a", b"")]


def test_a_memory_map_knows_its_size() -> None:
    kv = MemoryKV()
    kv.write({b"a": b"1", b"b": b"2", b"c": None})
    kv.write({b"a": None})

    assert len(kv) == 1
