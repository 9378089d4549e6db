"""What people see of documents: values with secret names are replaced, everything else stays as it is."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.redaction import REDACTED, is_secret_name, parse_path, redacted


def shown(document: Any, *paths: str) -> Any:
    raw = msgspec.json.encode(document)
    return msgspec.json.decode(redacted(raw, tuple(map(parse_path, paths))))


@pytest.mark.parametrize(
    "name",
    ["password", "db_password", "PASSWORD", "userPassword", "token", "access-token", "apiKey", "api_key", "apikey"]
    + ["Authorization", "card", "cardNumber", "HTTPAuthorization", "card_2"],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)
    assert shown({"a": [{name: {"x": 1}}]}) == {"a": [{name: REDACTED}]}


@pytest.mark.parametrize("name", ["discard", "tokens", "keyboard", "key", "pinned", "secretary", "monkey", ""])
def test_names_that_only_look_alike(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b", {"a": {"b": REDACTED, "c": {"b": 2}}, "b": 3, "l": [{"b": 4}]}),
        ("b", {"a": {"b": 1, "c": {"b": 2}}, "b": REDACTED, "l": [{"b": 4}]}),
        ("l.b", {"a": {"b": 1, "c": {"b": 2}}, "b": 3, "l": [{"b": REDACTED}]}),
        ("a.*.b", {"a": {"b": 1, "c": {"b": REDACTED}}, "b": 3, "l": [{"b": 4}]}),
        ("**.b", {"a": {"b": REDACTED, "c": {"b": REDACTED}}, "b": REDACTED, "l": [{"b": REDACTED}]}),
        ("*", {"a": REDACTED, "b": REDACTED, "l": REDACTED}),
    ],
)
def test_paths(path: str, expected: Any) -> None:
    assert shown({"a": {"b": 1, "c": {"b": 2}}, "b": 3, "l": [{"b": 4}]}, path) == expected


@pytest.mark.parametrize("path", ["", ".", "a.", "a..b", "**", "a.**", "a*", "a\n", "x" * 600])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match="is no path"):
        parse_path(path)


@pytest.mark.parametrize("document", [b'{"a": 1.10, "b":  [] }', b'{"keys":1}', b"[1e2]", b'"password"', b"null"])
def test_a_document_without_such_names_stays_byte_for_byte(document: bytes) -> None:
    assert redacted(document, (("zip",),)) == document
    assert redacted(document, ()) == document


def test_escapes_and_repeated_names_hide_nothing() -> None:
    assert redacted(rb'{"pass\u0077ord":"x"}', ()) == b'{"password":"(redacted)"}'
    assert b"first" not in redacted(b'{"password":"first","password":"second"}', ())


def test_what_cannot_be_read_is_hidden_as_a_whole() -> None:
    assert redacted(b'{"password":', ()) == b'"(redacted)"'
    assert redacted(b'{"token":' + b"[" * 5_000 + b"]" * 5_000 + b"}", ()) == b'"(redacted)"'


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "token", "dbPassword"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def _without_secrets(value: Any) -> bool:
    if isinstance(value, dict):
        return all(
            inner == REDACTED if is_secret_name(name) else _without_secrets(inner) for name, inner in value.items()
        )
    return all(map(_without_secrets, value)) if isinstance(value, list) else True


@given(_JSON)
def test_no_secret_is_left_at_any_depth_and_twice_is_once(document: Any) -> None:
    once = redacted(msgspec.json.encode(document), ())
    assert _without_secrets(msgspec.json.decode(once))
    assert redacted(once, ()) == once
