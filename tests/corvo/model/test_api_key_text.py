"""Keys as texts: recognisable, unguessable, hashed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.api_key_text import HASH, KEY_BYTES, checked_given, has_checksum, hash_of, key_text, shown_part
from corvo.model.errors import Refusal

dice = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)


@given(dice, dice)
def test_different_dice_give_different_keys_of_one_form(one: bytes, other: bytes) -> None:
    key = key_text(one)

    assert re.fullmatch(r"sk_[0-9A-Za-z]{49}", key) and has_checksum(key)
    assert (key == key_text(other)) == (one == other)


@given(dice, st.integers(3, 51), st.sampled_from("0aZ"))
def test_a_typing_mistake_is_found(one: bytes, at: int, other: str) -> None:
    key = key_text(one)
    mistyped = key[:at] + other + key[at + 1 :]

    assert has_checksum(mistyped) == (mistyped == key)


def test_a_pinned_key() -> None:
    """Scanners of repositories know this form: it must not change."""
    key = key_text(bytes(range(32)))

    assert key == "sk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1Yo7hP"
    assert shown_part(key) == "sk_003aUlTJ"
    assert HASH.fullmatch(hash_of(key))


@pytest.mark.parametrize("key", ["", "sk_", "sk_" + "0" * 49, "s" * 60, "sk_é" + "0" * 48])
def test_other_texts_have_no_checksum_and_nothing_of_them_is_shown(key: str) -> None:
    assert not has_checksum(key) and shown_part(key) == ""


@pytest.mark.parametrize("key", ["short", "x" * 257, "with a space in the key", "with-a-newline-in-it\n", "ключ" * 6])
def test_a_client_cannot_choose_a_weak_or_unsendable_key(key: str) -> None:
    with pytest.raises(Refusal, match="20 to 256 visible ASCII characters"):
        checked_given(key)


def test_a_client_can_choose_a_key() -> None:
    assert checked_given("a-long-enough-secret") == "a-long-enough-secret"
