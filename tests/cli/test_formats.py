"""Answers as JSON, JSON lines and YAML. The YAML was compared with what PyYAML and libyaml read."""

import json
import re
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.commands.requests import OutputName
from corvo.cli.formats import JSON, NDJSON, TABLE, YAML, encoded, listed

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_the_names_are_those_of_the_flag() -> None:
    assert get_args(OutputName) == (TABLE, JSON, NDJSON, YAML)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"name": "mail", "dead": 0, "paused": False, "last": None}, "name: mail\ndead: 0\npaused: false\nlast: null"),
        ([{"a": 1, "b": [1, 2]}, []], "- a: 1\n  b:\n    - 1\n    - 2\n- []"),
        ([[1, [2]], {}], "- - 1\n  - - 2\n- {}"),
        ({"payload": {"to": ["ada"]}, "tags": {}}, "payload:\n  to:\n    - ada\ntags: {}"),
        (
            ["no", "NULL", "1", "-", "", "a: b", "2026-01-31"],
            '- "no"\n- "NULL"\n- "1"\n- "-"\n- ""\n- "a: b"\n- "2026-01-31"',
        ),
        (["a/b.c", "é", "😀", "two\nlines", 'say "x"'], '- a/b.c\n- "é"\n- "😀"\n- "two\\nlines"\n- "say \\"x\\""'),
        (["\x1b[2J", "\x85\x9b", "\u2028"], '- "\\u001b[2J"\n- "\\u0085\\u009b"\n- "\\u2028"'),
        ({"true": 1}, '"true": 1'),
        ([1e22, 1.5e-9, 0.1, 2.0], "- 1.0e+22\n- 1.5e-9\n- 0.1\n- 2.0"),
    ],
)
def test_yaml(value: Any, text: str) -> None:
    assert encoded(value, YAML) == text


def test_numbers_keep_all_their_digits() -> None:
    exact = msgspec.Raw(b'{"id":123456789012345678901234567890,"f":0.10000000000000000001}')

    assert encoded(exact, YAML) == "id: 123456789012345678901234567890\nf: 0.10000000000000000001"
    assert encoded([exact], NDJSON) == bytes(exact).decode()


@given(DOCUMENTS)
def test_no_line_of_yaml_is_more_than_structure_and_one_scalar(value: Any) -> None:
    """Nothing in a text can begin a line, a key or a comment, or send the terminal a control character."""
    for line in encoded(value, YAML).split("\n"):
        rest = line.lstrip(" ")
        while rest.startswith("- "):
            rest = rest[2:]
        key, rest = _scalar(rest)
        if rest:
            assert rest[0] == ":"
            _, rest = _scalar(rest[2:]) if len(rest) > 1 else ("", "")
        assert rest == "" and not _CONTROL.search(line), (key, line)


def _scalar(text: str) -> tuple[str, str]:
    if text[:1] in ('"', "{", "["):
        _, end = json.JSONDecoder().raw_decode(text)
        return text[:end], text[end:]
    word = text.split(":")[0]
    assert word and " " not in word and "#" not in word
    return word, text[len(word) :]


@given(st.lists(DOCUMENTS, max_size=4))
def test_json_and_json_lines_say_the_same(values: list[Any]) -> None:
    whole = msgspec.json.decode(encoded(values, JSON))

    assert [msgspec.json.decode(line) for line in encoded(values, NDJSON).split("\n") if line] == whole
    assert msgspec.json.decode("".join(listed(iter(values), JSON))) == whole
    assert "".join(listed(iter(values), NDJSON)).rstrip("\n") == encoded(values, NDJSON)


def test_what_is_no_list_is_one_line() -> None:
    assert encoded({"a": [1, 2]}, NDJSON) == '{"a":[1,2]}'


def test_a_list_that_stops_half_way_has_no_end() -> None:
    pieces = listed(iter([1, 2]), JSON)

    assert next(pieces) + next(pieces) == "[\n1,\n2"
