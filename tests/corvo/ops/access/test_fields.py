"""Scopes and expiries as texts."""

import pytest

from corvo.model.errors import Refusal
from corvo.ops.access.fields import checked_hash, parse_expiry, parse_scope


@pytest.mark.parametrize(
    ("scope", "globs"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        (" , ", ()),
        ("mail.*", ("mail.*",)),
        ("b, a,a", ("a", "b")),
        (["mail.*", "a[0-9]?", "x/y:z-1"], ("a[0-9]?", "mail.*", "x/y:z-1")),
    ],
)
def test_a_scope_is_a_sorted_set_of_globs(scope: str | list[str] | None, globs: tuple[str, ...]) -> None:
    assert parse_scope(scope) == globs


@pytest.mark.parametrize("scope", ["a b", "acme|mail", "a\0", "ä", "x" * 201, ["a"] * 600])
def test_other_texts_are_no_scope(scope: str | list[str]) -> None:
    with pytest.raises(Refusal, match="queue_scope"):
        parse_scope(scope)


def test_an_expiry_is_ahead_or_none() -> None:
    assert parse_expiry(None, 0) == parse_expiry("", 0) == 0
    with pytest.raises(Refusal, match="expires_at"):
        parse_expiry("2020-01-01", 2**62)


def test_what_is_no_hash_is_no_key() -> None:
    assert checked_hash("0" * 64) == "0" * 64
    with pytest.raises(Refusal) as refused:
        checked_hash("0" * 63)
    assert refused.value.code == "KEY_NOT_FOUND"
