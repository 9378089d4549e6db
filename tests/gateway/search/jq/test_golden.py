"""What each form of the language means: an expression, a payload as it is stored, and whether they match."""

import json

import pytest

from tests.gateway.search.jq.database import is_match

PERSON = (
    '{"email": "user@example.com", "amount": 150, "tags": ["vip", "new", 7, null], "metadata": {"region": "us-east"}}'
)

GOLDEN = [
    # the six examples that everybody starts from
    ('.email == "user@example.com"', PERSON, True),
    (".amount > 100", PERSON, True),
    ('.tags | contains("vip")', PERSON, True),
    ('.metadata.region == "us-east"', PERSON, True),
    ('.template | startswith("welcome")', '{"template": "welcome_email"}', True),
    (".items | length > 5", '{"items": [1, 2, 3, 4, 5, 6]}', True),
    # paths
    (". == 5", "5", True),
    (". == 5", '"5"', False),
    ('."odd key" == 1', '{"odd key": 1}', True),
    ('.["k"] == 1', '{"k": 1}', True),
    ('.a["k"].b == 1', '{"a": {"k": {"b": 1}}}', True),
    ('.a."k".b == 1', '{"a": {"k": {"b": 1}}}', True),
    (".a[0] == 1", '{"a": [1, 2]}', True),
    (".a.[0] == 1", '{"a": [1, 2]}', True),
    (".a[-1] == 2", '{"a": [1, 2]}', True),
    (".a[-3] == null", '{"a": [1, 2]}', True),
    (".a[2] == null", '{"a": [1, 2]}', True),
    (".[1] == 2", "[1, 2]", True),
    (".[0][1] == 2", "[[1, 2]]", True),
    (".a[0] == null", '{"a": {"0": 1}}', True),
    ('.a["0"] == 1', '{"a": {"0": 1}}', True),
    (".a.b.c == null", '{"a": 1}', True),
    (".and == 1 and .not == 2", '{"and": 1, "not": 2}', True),
    (".a == 1", '{"a": 1, "a": 2}', True),
    # equality, exact by type
    (".a == 1", '{"a": 1.0}', True),
    (".a == 1.0", '{"a": 1}', True),
    (".a == 100", '{"a": 1e2}', True),
    (".a == 1", '{"a": true}', False),
    (".a == 0", '{"a": false}', False),
    (".a == 1.0", '{"a": true}', False),
    (".a == true", '{"a": 1}', False),
    (".a == true", '{"a": true}', True),
    (".a == false", '{"a": false}', True),
    (".a == false", "{}", False),
    (".a != false", "{}", True),
    ('.a == "1"', '{"a": 1}', False),
    (".a == 1", '{"a": "1"}', False),
    (".a == 1.5", '{"a": "1.5"}', False),
    ('.a == "true"', '{"a": true}', False),
    ('.a == "[1]"', '{"a": [1]}', False),
    ('.a == "[1]"', '{"a": "[1]"}', True),
    ('.a == "{}"', '{"a": {}}', False),
    (".a == null", '{"a": null}', True),
    (".a == null", "{}", True),
    (".a != null", '{"a": 0}', True),
    (".a != 1", '{"a": "1"}', True),
    ("1 == .a", '{"a": 1}', True),
    ('"x" != .a', '{"a": "x"}', False),
    ('.a == ""', '{"a": ""}', True),
    ('.a == ""', "{}", False),
    (".a == 0", '{"a": -0.0}', True),
    # numbers that do not fit
    (".a == 9007199254740993", '{"a": 9007199254740993}', True),
    (".a == 9007199254740992", '{"a": 9007199254740993}', False),
    (".a > 9007199254740992.0", '{"a": 9007199254740993}', True),
    (".a == 9223372036854775807", '{"a": 9223372036854775807}', True),
    (".a == 9223372036854775808", '{"a": 9223372036854775809}', True),
    (".a == -9223372036854775809", '{"a": -9223372036854775808}', True),
    (".a < 1e400", '{"a": 1e308}', True),
    (".a == 1e400", '{"a": 1e999}', True),
    (".a > -1e400", '{"a": 0}', True),
    (".a == 19.99", '{"a": 19.99}', True),
    (".a == 0.1", '{"a": 0.10}', True),
    # order: between numbers, or between strings
    (".a < 5", '{"a": 4.5}', True),
    (".a <= 5", '{"a": 5}', True),
    (".a >= 5", '{"a": 4}', False),
    ("5 < .a", '{"a": 6}', True),
    (".a < 5", "{}", False),
    (".a < 5", '{"a": null}', False),
    (".a >= 0", '{"a": true}', False),
    (".a > 5", '{"a": "6"}', False),
    (".a > 5", '{"a": [6]}', False),
    ('.a < "b"', '{"a": "a"}', True),
    ('.a < "b"', '{"a": 1}', False),
    ('.a > "A"', '{"a": ["b"]}', False),
    ('.a > "Z"', '{"a": "é"}', True),
    ('.a > "\uffff"', '{"a": "😀"}', True),
    ("not .a < 5", "{}", True),
    # a path with a path
    (".a == .b", '{"a": 1, "b": 1.0}', True),
    (".a == .b", '{"a": 1, "b": true}', False),
    (".a == .b", '{"a": "[1]", "b": [1]}', False),
    (".a == .b", '{"a": [1, {"x": 1, "y": 2}], "b": [1.0, {"y": 2, "x": 1}]}', True),
    (".a == .b", '{"a": [1], "b": [true]}', False),
    (".a == .b", '{"a": null}', True),
    (".a != .b", '{"a": 1}', True),
    (".a < .b", '{"a": 1, "b": 2}', True),
    (".a < .b", '{"a": "x", "b": "y"}', True),
    (".a < .b", '{"a": 1, "b": "2"}', False),
    (".a < .b", '{"a": false, "b": true}', False),
    (".a <= .b", "{}", False),
    ("(.a | length) == (.b | length)", '{"a": "xyz", "b": [1, 2, 3]}', True),
    (".a | length == .n", '{"a": "xyz", "n": 3}', True),
    # truth
    (".a", '{"a": 0}', True),
    (".a", '{"a": ""}', True),
    (".a", '{"a": []}', True),
    (".a", '{"a": false}', False),
    (".a", '{"a": null}', False),
    (".a", "{}", False),
    (".", "false", False),
    (".", "{}", True),
    # and, or, not
    (".a == 1 and .b == 2", '{"a": 1, "b": 2}', True),
    (".a == 1 and .b == 2", '{"a": 1}', False),
    (".a == 1 or .b == 2", '{"b": 2}', True),
    (".a or .b and .c", '{"a": 1}', True),
    ("(.a or .b) and .c", '{"a": 1}', False),
    ("not .a", "{}", True),
    ("not not .a", '{"a": 1}', True),
    ("not .a and .b", '{"b": 1}', True),
    ("not (.a and .b)", '{"b": 1}', True),
    (".a | not", "{}", True),
    ("(.a == 1) | not", '{"a": 1}', False),
    (".a == 1 and .b == 2 | not", '{"a": 1}', True),
    (".a | not | not", '{"a": 1}', True),
    ("((.a | not) and .b) or .c", '{"b": 1}', True),
    ('.tags | contains("x") and .b', '{"tags": ["x"], "b": 1}', True),
    # contains
    ('.a | contains("vip")', '{"a": ["vipx"]}', False),
    ('.a | contains("ip")', '{"a": "vip"}', True),
    ('.a | contains("")', '{"a": ""}', True),
    ('.a | contains("%")', '{"a": "abc"}', False),
    (".a | contains(1)", '{"a": [1.0]}', True),
    (".a | contains(1)", '{"a": [true]}', False),
    (".a | contains(1)", '{"a": "1"}', False),
    (".a | contains(null)", '{"a": [null]}', True),
    (".a | contains(null)", '{"a": [[], {}]}', False),
    (".a | contains(null)", "{}", False),
    (".a | contains(true)", '{"a": [true]}', True),
    (".a | contains(true)", '{"a": [1]}', False),
    ('.a | contains("x")', '{"a": {"k": "x"}}', False),
    ('.a | contains("[1]")', '{"a": [[1]]}', False),
    ('. | contains("x")', '["x"]', True),
    ('.a | contains("x") | not', '{"a": ["y"]}', True),
    # text
    ('.a | startswith("")', '{"a": ""}', True),
    ('.a | startswith("")', '{"a": 1}', False),
    ('.a | startswith("12")', '{"a": 123}', False),
    ('.a | startswith("[")', '{"a": []}', False),
    ('.a | startswith("_")', '{"a": "x"}', False),
    ('.a | startswith("ab")', '{"a": "a"}', False),
    ('.a | startswith("é😀")', '{"a": "é😀x"}', True),
    ('.a | endswith(".pdf")', '{"a": "x.pdf"}', True),
    ('.a | endswith("abc")', '{"a": "bc"}', False),
    ('.a | endswith("")', '{"a": "bc"}', True),
    ('.a | endswith("")', "{}", False),
    ('.a | test("^a.c$")', '{"a": "abc"}', True),
    ('.a | test("b")', '{"a": "abc"}', True),
    ('.a | test("(?i)ABC")', '{"a": "abc"}', True),
    ('.a | test("1")', '{"a": 1}', False),
    ('.a | test("")', "{}", False),
    ('.a | test("^(a+)+$")', '{"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}', False),
    ('.a | test("^.$")', '{"a": "😀"}', True),
    # length
    (".a | length == 2", '{"a": "é😀"}', True),
    (".a | length == 2", '{"a": [1, [2, 3]]}', True),
    (".a | length == 2", '{"a": {"x": 1, "y": [1, 2, 3]}}', True),
    (".a | length == 1", '{"a": {"x": 1, "x": 2}}', True),
    (".a | length == 0", "{}", True),
    (".a | length == 0", '{"a": null}', True),
    (".a | length == 0", '{"a": {}}', True),
    (".a | length == 5", '{"a": 5}', False),
    (".a | length != 5", '{"a": 5}', True),
    (".a | length >= 0", '{"a": true}', False),
    ("(.a | length) > 1", '{"a": "xy"}', True),
    ("1 < (.a | length)", '{"a": "xy"}', True),
    (". | length in [1, 3]", "[1, 2, 3]", True),
    (".a | length == true", '{"a": "x"}', False),
    ('.a | length == "1"', '{"a": "x"}', False),
    (".a | length == null", '{"a": 5}', True),
    # type
    ('.a | type == "string"', '{"a": "x"}', True),
    ('.a | type == "number"', '{"a": 1.5}', True),
    ('.a | type == "boolean"', '{"a": false}', True),
    ('.a | type == "null"', "{}", True),
    ('.a | type == "array"', '{"a": []}', True),
    ('. | type == "object"', "{}", True),
    ('.a | type in ["null", "boolean"]', '{"a": 1}', False),
    ('.a | type != "string"', '{"a": 1}', True),
    ("(.a | type) == (.b | type)", '{"a": 1, "b": 2.5}', True),
    # has
    ('. | has("a")', '{"a": null}', True),
    ('. | has("a")', '{"b": 1}', False),
    ('. | has("a")', '["a"]', False),
    (".a | has(1)", '{"a": [1, null]}', True),
    (".a | has(2)", '{"a": [1, null]}', False),
    (".a | has(0)", '{"a": {"0": 1}}', False),
    ('.a | has("b")', "{}", False),
    # in
    ('.a in [1, "a", null]', '{"a": "a"}', True),
    ('.a in [1, "a", null]', "{}", True),
    ('.a in [1, "a", null]', '{"a": true}', False),
    ('.a in ["a", "b"]', "{}", False),
    ('not .a in ["a", "b"]', "{}", True),
    ('.a in ["[]", "{}"]', '{"a": []}', False),
    ('.a in ["[]", "{}"]', '{"a": "[]"}', True),
    (".a in [true, 0, 1.5]", '{"a": 1.5}', True),
    (".a in []", "{}", False),
    ("(.a) in [2]", '{"a": 2}', True),
]

# A producer may write any character as an escape; what is meant stays the same.
ESCAPED = [
    (".a == 1", r'{"\u0061": 1}', True),
    ('.a == "x"', r'{"a": "\u0078"}', True),
    ('.a == "/"', r'{"a": "\/"}', True),
    ('.a | contains("é")', r'{"a": ["\u00e9"]}', True),
    ('.a == "a\\u0000b"', r'{"a": "a\u0000b"}', True),
    ('.a == "a"', r'{"a": "a\u0000b"}', False),
    (".a | length == 3", r'{"a": "a\u0000b"}', True),
    (".a | length == 1", r'{"a": "\ud83d\ude00"}', True),
    ('.a | test("^a.b$")', r'{"a": "a\u0000b"}', True),
    ('.a | test("x")', r'{"a": "\ud800x"}', True),
    ('.a | test("^x$")', r'{"a": "x\n"}', False),
    ('.a | test("(?m)^y$")', r'{"a": "x\ny"}', True),
    ('.a == "x"', r'{"a": "\ud800"}', False),
    (".a == 1", r'{"a": 1, "\u0061": 2}', True),
    (".a == 9007199254740993", r'{"a": 9007199254740993, "b": "\n"}', True),
    (".a == 9223372036854775808", r'{"a": 9223372036854775809, "b": "\n"}', True),
    (".a == 1", r'{"a": true, "b": "\n"}', False),
    (".a[-1] == .b", r'{"a": [2, "\n"], "b": "\u000a"}', True),
]

KEYS = [
    "a",
    'a"b',
    "a.b",
    "$",
    "[0]",
    "",
    "\0",
    "a\0b",
    "a\\b",
    "é",
    "😀",
    "a'b",
    "a]b",
    "\n",
    "#",
    " ",
    '"',
    '""',
    "--",
    "%",
]
NO_JSON = [
    "",
    "x",
    "{",
    '{"a": }',
    "{'a': 1}",
    "{a: 1}",
    "[1,]",
    "NaN",
    "\\",
    r"{\u0061",
    '"\\ud8',
    "[" * 2000 + "\\",
    None,
]


@pytest.mark.parametrize(("expression", "payload", "is_expected"), GOLDEN + ESCAPED)
def test_what_an_expression_means(expression: str, payload: str, is_expected: bool) -> None:
    assert is_match(expression, payload) is is_expected


@pytest.mark.parametrize(("expression", "payload", "is_expected"), [case for case in GOLDEN if case[1][0] == "{"])
def test_it_means_the_same_where_the_payload_is_read_in_python(
    expression: str, payload: str, is_expected: bool
) -> None:
    escaped = payload[:-1] + (", " if payload != "{}" else "") + r'"\u007f\\": "\n"}'

    assert is_match(expression, escaped) is is_expected


@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize("key", KEYS)
def test_every_key_can_be_asked_for(key: str, is_ascii: bool) -> None:
    quoted = json.dumps(key)
    stored = json.dumps({key: {key: [5]}, "other": 6}, ensure_ascii=is_ascii)

    for path in (f".{quoted}.{quoted}[0]", f".[{quoted}][{quoted}][0]"):
        assert is_match(f"{path} == 5", stored)
        assert not is_match(f"{path} == 5", '{"other": 5}')
    assert is_match(f". | has({quoted})", stored)
    assert is_match(f".{quoted} | length == 1", stored)
    assert is_match(f".{quoted}.{quoted} | contains(5)", stored)


@pytest.mark.parametrize("expression", [".a", "not .a", ".a == null", ". | length == 0", ".a == .b"])
@pytest.mark.parametrize("payload", NO_JSON)
def test_what_is_no_json_matches_nothing(expression: str, payload: str | None) -> None:
    assert not is_match(expression, payload)
