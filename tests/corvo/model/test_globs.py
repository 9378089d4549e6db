"""Globs: Python, SQLite and a regular expression agree on every name."""

import re
import sqlite3
from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corvo.model.globs import ALPHABET, is_in_scope, pieces, to_regex, to_sqlite
from corvo.model.limits import QUEUE_NAME

# Few letters, so that globs and names meet; and whatever a set can be made of.
globs = st.one_of(
    st.text("ab.-*?[]!^\\x", max_size=8),
    st.lists(
        st.one_of(st.sampled_from("ab.*?"), st.text("ab-!^].", max_size=4).map(lambda chars: f"[{chars}]")), max_size=6
    ).map("".join),
)
names = st.one_of(st.text("ab.-", min_size=1, max_size=8), st.text(ALPHABET, min_size=1, max_size=20))
_database = sqlite3.connect(":memory:")


def on_sqlite(name: str, glob: str | None) -> bool:
    if glob is None:
        return False
    return bool(_database.execute("SELECT ? GLOB ?", (name, glob)).fetchone()[0])


@given(names, globs)
@example("a.b", "a[].]b")
@example("a-b", "a[!-]b")
@example("a-b", "a[a-]b")
@example("a.b", "a[^.]b")
@example("b", "[b-a]")
@example("b", "[!b-a]")
@example("ab", "a[b")
@example("ab", "**a**b**")
def test_every_reading_of_a_glob_is_that_of_fnmatch(name: str, glob: str) -> None:
    expected = fnmatchcase(name, glob)
    regex = to_regex(glob)

    assert on_sqlite(name, to_sqlite(glob)) is expected
    assert (regex is not None and re.fullmatch(regex, name) is not None) is expected
    assert is_in_scope(name, (glob,)) is expected


def test_the_alphabet_is_that_of_names() -> None:
    assert {chr(code) for code in range(0x3000) if QUEUE_NAME.fullmatch(f"a{chr(code)}")} == set(ALPHABET)


def test_a_glob_that_no_name_can_match_has_no_text() -> None:
    assert to_sqlite("mail|*") is None
    assert to_regex("mail|*") is None


def test_a_run_of_stars_is_one() -> None:
    assert len(pieces("*****a*****")) == 3


@pytest.mark.parametrize("glob", ["*a*a*a*a*a*a*a*a*b", "[a-z]*" * 30, "?*" * 60 + "!"])
def test_no_glob_takes_long(glob: str) -> None:
    """A second for two hundred characters would show in the suite's slowest tests; a hang would never end."""
    assert not is_in_scope("a" * 200, (glob,)) or "[a-z]" in glob
    on_sqlite("a" * 200, to_sqlite(glob))
