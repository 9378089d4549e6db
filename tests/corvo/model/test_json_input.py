"""JSON from outside: checked, then passed on to the byte."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.errors import Refusal
from corvo.model.json_input import (
    EMPTY_RAW,
    check_depth,
    check_numbers,
    decode_body,
    document,
    keys_of,
    object_document,
    to_raw,
)
from corvo.model.limits import JSON_DEPTH_MAX


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: int = 0


class Sample(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    count: int = 0
    payload: msgspec.Raw = EMPTY_RAW
    inner: list[Inner] = []


ROOT = Path(__file__).parents[3]
decoder = msgspec.json.Decoder(Sample)


def refusal_of(body: bytes) -> Refusal:
    with pytest.raises(Refusal) as refused:
        decode_body(decoder, body)
    return refused.value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_a_payload_passes_through_to_the_byte(value: object) -> None:
    text = msgspec.json.encode(value)

    sample = decode_body(decoder, b'{"name": "a", "payload":  ' + text + b" }")

    assert bytes(sample.payload) == text


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        # what it is, in the order of precedence: bytes, depth, grammar, shape
        (b'{"name": "\xff"}', "PARSE_ERROR", None),
        (b"[" * 65 + b"]" * 65, "PARSE_ERROR", None),
        (b"", "PARSE_ERROR", None),
        (b"{", "PARSE_ERROR", None),
        (b'{"name": "a"} x', "PARSE_ERROR", None),
        (b'{"name": "a", "payload": nul}', "PARSE_ERROR", None),
        (b'{"name": "a", "payload": 01}', "PARSE_ERROR", None),
        (b'{"name": "a", "payload": "\\x"}', "PARSE_ERROR", None),
        (b'{"name": "a", "payload": "\\ud800"}', "PARSE_ERROR", None),
        (b'{"name": "a", "payload": "\x01"}', "PARSE_ERROR", None),
        (b'{"name": "a", "payload": [1,]}', "PARSE_ERROR", None),
        (b"\xef\xbb\xbf{}", "PARSE_ERROR", None),
        (b"{}", "VALIDATION_ERROR", "name"),
        (b'{"name": 1}', "VALIDATION_ERROR", "name"),
        (b'{"name": "a", "count": "1"}', "VALIDATION_ERROR", "count"),
        (b'{"name": "a", "count": 1.5}', "VALIDATION_ERROR", "count"),
        (b'{"name": "a", "nmae": 1}', "VALIDATION_ERROR", "nmae"),
        (b'{"name": "a", "inner": [{}, {"size": []}]}', "VALIDATION_ERROR", "inner[1].size"),
        (b'{"name": "a", "inner": [{"sise": 1}]}', "VALIDATION_ERROR", "inner[0].sise"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(body: bytes, code: str, field: str | None) -> None:
    refusal = refusal_of(body)

    assert (refusal.code, refusal.field) == (code, field)
    assert refusal.status == 400
    assert refusal.message


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"a"'])
def test_a_body_that_is_no_object_is_refused_as_a_whole(body: bytes) -> None:
    assert refusal_of(body).field in (None, "body")


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def test_a_body_may_nest_up_to_the_limit_and_no_deeper() -> None:
    check_depth(nested(JSON_DEPTH_MAX))

    with pytest.raises(Refusal, match="nested deeper"):
        check_depth(nested(JSON_DEPTH_MAX + 1))


def test_brackets_side_by_side_or_inside_strings_do_not_nest() -> None:
    check_depth(b"[" + b"[]," * 10_000 + b"[]]")
    check_depth(b'["' + b"[{" * 1_000 + b'\\"' + b"[" * 100 + b'"]')
    check_depth(b'["\\\\",' + b"[]," * 100 + b"[]]")


@given(st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b'\\"', b"a", b","]), max_size=300))
def test_depth_is_what_a_walk_over_the_characters_finds(tokens: list[bytes]) -> None:
    body = b"[]" * 40 + b"".join(tokens)
    depth, deepest, inside, escaped = 0, 0, False, False
    for character in body.decode():
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    if inside:
        return  # an unclosed string: refused by the grammar, whatever the depth

    try:
        check_depth(body)
        found_deep = False
    except Refusal:
        found_deep = True

    assert found_deep == (deepest > JSON_DEPTH_MAX)


def test_a_hostile_body_is_refused_in_a_moment() -> None:
    """In its own process with a time limit, because a regular expression cannot be interrupted."""
    script = (
        'from corvo.model import json_input as j\nj.check_depth(b"[" + b"[]," * 70 + b\'"\' + b\'\\\\"\' * 500_000)'
    )

    subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=5, check=True)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_body_or_a_refusal(body: bytes) -> None:
    try:
        decode_body(decoder, body)
    except Refusal as refusal:
        assert refusal.status == 400


def test_null_and_absence_are_both_no_document() -> None:
    assert document(msgspec.Raw(b"null"), "tags") == b""
    assert document(EMPTY_RAW, "tags") == b""
    assert to_raw(b"") is None


def test_a_document_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert document(msgspec.Raw(b'"12345678"'), "result", 10) == b'"12345678"'

    with pytest.raises(Refusal) as refused:
        document(msgspec.Raw(b'"123456789"'), "result", 10)

    assert (refused.value.code, refused.value.field) == ("PAYLOAD_TOO_LARGE", "result")


@pytest.mark.parametrize("text", [b"[]", b"1", b'"{}"', b"true"])
def test_where_an_object_is_wanted_nothing_else_is_taken(text: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        object_document(msgspec.Raw(text), "tags")

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "tags")
    assert object_document(msgspec.Raw(b'{"a":1}'), "tags") == b'{"a":1}'


def test_a_stored_document_is_shown_as_it_is() -> None:
    assert msgspec.json.encode([to_raw(b'{"a" : 1}')]) == b'[{"a" : 1}]'


@pytest.mark.parametrize(
    ("stored", "merged"),
    [
        (b"", b'{"more":1}'),
        (b'{"a": 2.50, "b" : [ ]}', b'{"a":2.50,"b":[ ],"more":1}'),
        (b' {"more": 7}', b'{"more":1}'),
        (b"[1, 2]", b'{"payload":[1, 2],"more":1}'),
        (b"null", b'{"payload":null,"more":1}'),
        (b'"{"', b'{"payload":"{","more":1}'),
    ],
)
def test_a_stored_document_is_merged_with_other_keys_without_being_read(stored: bytes, merged: bytes) -> None:
    assert msgspec.json.encode({**keys_of(stored), "more": 1}) == merged


@pytest.mark.parametrize("text", [b"1e400", b'{"a": [1, -1E999]}', b"1" + b"0" * 400 + b".5"])
def test_a_number_that_no_double_holds_is_refused_by_its_field(text: bytes) -> None:
    with pytest.raises(Refusal, match="out of range") as refused:
        check_numbers(text, "payload")

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "payload")


@pytest.mark.parametrize("text", [b"1e308", b'"1e400"', b"1" + b"0" * 400, b'{"e": 1.5}'])
def test_numbers_that_can_be_read_and_texts_that_look_like_others_pass(text: bytes) -> None:
    check_numbers(text, "payload")
