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


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), small_keys, st.binary(max_size=2)),
        st.tuples(st.just("remove"), small_keys, st.just(b"")),
        st.tuples(st.sampled_from(("seal", "store")), st.just(b""), st.just(b"")),
    ),
    max_size=40,
)


@given(steps)
def test_whatever_comes_and_goes_map_and_overlay_together_are_what_was_put(
    steps: list[tuple[str, bytes, bytes]],
) -> None:
    kv = MemoryKV()
    overlay = Overlay(kv)
    model: dict[bytes, bytes] = {}
    for step, key, value in steps:
        if step == "put":
            if key in model:
                overlay.puts[key] = value
            else:
                overlay.put_new(key, value)
            model[key] = value
        elif step == "remove":
            overlay.remove(key)
            model.pop(key, None)
        else:
            overlay.seal()
            if step == "store":
                kv.write(overlay.take_changes())
                assert dict(kv.scan(b"", b"\xff" * 3)) == model
        assert dict(overlay.scan(b"", b"\xff" * 3)) == model


def test_a_key_that_came_and_went_leaves_nothing_to_store() -> None:
    overlay = Overlay(MemoryKV())
    overlay.put_new(b"a", b"1")
    overlay.seal()
    overlay.remove(b"a")

    assert overlay.seal() == {b"a": None}, "the entry did remove it, and the state's hash must know"
    assert overlay.take_changes() == {}


def test_a_key_that_was_stored_is_removed_from_the_map() -> None:
    overlay = Overlay(MemoryKV())
    overlay.put_new(b"a", b"1")
    overlay.seal()
    overlay.take_changes()
    overlay.remove(b"a")
    overlay.put_new(b"a", b"2")
    overlay.remove(b"a")
    overlay.seal()

    assert overlay.take_changes() == {b"a": None}
