"""What is no expression is refused with the column of the mistake; nothing else ever comes out of any text."""

import sqlite3
from random import Random

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.errors import Refusal
from corvo.model.limits import JQ_BYTES_MAX, JQ_DEPTH_MAX, JQ_LIST_MAX, JQ_TOKENS_MAX
from gateway.search import jq
from tests.gateway.search.jq.database import Payloads, is_match
from tests.support import jq_plays

COLUMN = sa.column("payload", sa.String)


def refused(expression: str) -> str:
    with pytest.raises(Refusal) as refusal:
        jq.condition(expression, COLUMN)
    assert (refusal.value.code, refusal.value.status, refusal.value.field) == ("VALIDATION_ERROR", 400, "payload_jq")
    return refusal.value.message.removeprefix("payload_jq: ")


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("", 'column 1: expected a path, a value, "not" or "(", found the end'),
        ("   ", 'column 4: expected a path, a value, "not" or "(", found the end'),
        (".a ==", "column 6: expected a path or a value, found the end"),
        (".a = 1", 'column 4: expected a path, a value or an operator, found "="'),
        (".a == 1 2", 'column 9: expected "and", "or", "| not" or the end, found "2"'),
        (".a == x", 'column 7: expected a path or a value, found "x"'),
        (".a == 'x'", 'column 7: expected a path, a value or an operator, found "\'"'),
        ("a == 1", 'column 1: expected a path, a value, "not" or "(", found "a"'),
        (".a & .b", 'column 4: expected a path, a value or an operator, found "&"'),
        (".a?", 'column 3: expected a path, a value or an operator, found "?"'),
        (".a[]", 'column 4: expected a key (in quotes) or a position, found "]"'),
        (".a[1.5]", 'column 4: expected a key (in quotes) or a position, found "1.5"'),
        (".a[k]", 'column 4: expected a key (in quotes) or a position, found "k"'),
        (".a[0", 'column 5: expected a closing "]", found the end'),
        (
            ".a[2147483648]",
            "column 4: expected a key (in quotes) or a position, between -2147483647 and 2147483647,"
            ' found "2147483648"',
        ),
        (".a..b", 'column 4: expected a key after ".", found ".b"'),
        (".a.5", 'column 4: expected a key after ".", found "5"'),
        (
            ".a | has(-1)",
            'column 10: expected a key (in quotes) or a position from 0, between 0 and 2147483647, found "-1"',
        ),
        (".a | contains", 'column 14: expected "(" after contains, found the end'),
        (".a | contains()", 'column 15: expected a value, found ")"'),
        (".a | contains(.b)", 'column 15: expected a value, found ".b"'),
        (".a | startswith(1)", 'column 17: expected a string, found "1"'),
        ('.a | startswith("x"', 'column 20: expected a closing ")", found the end'),
        (".a | length", 'column 12: expected a comparison or "in", found the end'),
        (
            ".a | select(.b)",
            'column 6: expected contains, startswith, endswith, test, has, length, type or not, found "select"',
        ),
        (
            "(.a or .b) | length > 1",
            'column 14: expected "not"; other functions are piped to a path alone, found "length"',
        ),
        ("(.a == 1", 'column 9: expected "and", "or" or a closing ")", found the end'),
        (".a == 1)", 'column 8: expected "and", "or", "| not" or the end, found ")"'),
        (".a and", 'column 7: expected a path, a value, "not" or "(", found the end'),
        ("and .a", 'column 1: expected a path, a value, "not" or "(", found "and"'),
        ("1 == 1", 'column 6: expected a path, found "1"'),
        ("true", "column 5: expected a comparison: == != < <= > >=, found the end"),
        ('1 == .a | has("k")', "column 6: expected a path: join tests with and, or, not"),
        (".a < null", "column 6: expected a number or a string; null has no order"),
        ("true > .a", "column 1: expected a number or a string; true has no order"),
        (".a in 1", 'column 7: expected a list, as in ["a", "b"], found "1"'),
        (".a in [.b]", 'column 8: expected a value, found ".b"'),
        (".a in [1,]", 'column 10: expected a value, found "]"'),
        (".a in [1 2]", 'column 10: expected "," or a closing "]", found "2"'),
        ('.é == "x"', 'column 2: expected a path, a value or an operator, found "é"'),
        ('"é😀" == .é', 'column 10: expected a path, a value or an operator, found "é"'),
        ('.a == "x', "column 7: expected the rest of a JSON string: unterminated string starting at"),
        ('.a == "\\x"', "column 8: expected the rest of a JSON string: invalid \\escape"),
        ('.a == "x\ny"', "column 9: expected the rest of a JSON string: invalid control character at"),
        ('.a == "\\ud800"', "column 7: expected a valid string; it has a lone surrogate"),
        (".a == 007", 'column 8: expected "and", "or", "| not" or the end, found "0"'),
        (".a == \x1b[0m", 'column 7: expected a path, a value or an operator, found "\\u001b"'),
        (".a\u00a0== 1", 'column 3: expected a path, a value or an operator, found "\\u00a0"'),
    ],
)
def test_a_mistake_is_named_with_its_column(expression: str, sentence: str) -> None:
    assert refused(expression) == sentence


@pytest.mark.parametrize(
    "pattern", [r"(a)\\1", "(?=a)", "(?!a)", "(?<=a)", "(?>a)", "a{1001}", "((a{99}){99}){99}", "(", "[", "*", "a**"]
)
def test_a_pattern_that_takes_more_than_linear_time_is_refused(pattern: str) -> None:
    assert refused(f'.a | test("{pattern}")').startswith("column 11: expected a regular expression in RE2 syntax: ")


LONGEST = [
    " and ".join(["."] * (JQ_TOKENS_MAX // 2)),
    " or ".join(["(.a)"] * (JQ_TOKENS_MAX // 4)),
    "(" * JQ_DEPTH_MAX + ".a" + ")" * JQ_DEPTH_MAX,
    "not " * JQ_DEPTH_MAX + ".a",
    ".a" + " | not" * JQ_DEPTH_MAX,
    "(not " * (JQ_DEPTH_MAX // 2) + ".a | length > 1" + ")" * (JQ_DEPTH_MAX // 2),
    f".a in [{', '.join(['1.5'] * JQ_LIST_MAX)}]",
    f".a in [{', '.join(['true'] * JQ_LIST_MAX)}] or .b in [{', '.join(['0'] * JQ_LIST_MAX)}]",
    ".a" * JQ_TOKENS_MAX,
    " and ".join(['.a | contains("x")'] * (JQ_TOKENS_MAX // 8)),
    " or ".join([".a | length == .b"] * (JQ_TOKENS_MAX // 7)),
    '.a == "' + "x" * (JQ_BYTES_MAX - 8) + '"',
]


@pytest.mark.parametrize("expression", LONGEST)
def test_the_longest_expression_is_not_too_long_for_sqlite(expression: str) -> None:
    assert is_match(expression, "{}") in (True, False)


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        (
            '.a == "' + "x" * (JQ_BYTES_MAX - 7) + '"',
            f"{JQ_BYTES_MAX + 1} bytes long; at most {JQ_BYTES_MAX} are allowed",
        ),
        ("é" * JQ_BYTES_MAX, f"{2 * JQ_BYTES_MAX} bytes long; at most {JQ_BYTES_MAX} are allowed"),
        (".a" * (JQ_TOKENS_MAX + 1), f"column 1001: more than {JQ_TOKENS_MAX} words and signs; shorten the expression"),
        ("(" * (JQ_DEPTH_MAX + 1) + ".a", f"column 33: nested deeper than {JQ_DEPTH_MAX} levels"),
        ("not " * (JQ_DEPTH_MAX + 1) + ".a", f"column 129: nested deeper than {JQ_DEPTH_MAX} levels"),
        ("(" * 499, f"column 33: nested deeper than {JQ_DEPTH_MAX} levels"),
        (".a" + " | not" * (JQ_DEPTH_MAX + 1), f"column 201: nested deeper than {JQ_DEPTH_MAX} levels"),
        (
            f".a in [{','.join(['1'] * (JQ_LIST_MAX + 1))}]",
            f"column 208: expected the end of the list: it has more than {JQ_LIST_MAX} values",
        ),
    ],
)
def test_what_is_beyond_a_limit_is_refused(expression: str, sentence: str) -> None:
    assert refused(expression) == sentence


def test_values_keys_and_paths_are_bound() -> None:
    hostile = "\"') OR 1=1 --"
    quoted = '"\\"\') OR 1=1 --"'
    condition = jq.condition(
        f".a.{quoted} == {quoted} or .{quoted} in [{quoted}, 5] or .b | contains({quoted})", COLUMN
    )

    sql = str(sa.select(sa.literal(1)).where(condition))

    assert "1=1" not in sql
    assert not is_match(f".{quoted} == {quoted}", f'{{"a": 1, "b": "{hostile[2:]}"}}')


def attempt(payloads: Payloads, expression: str) -> bool:
    """Whether it was understood. Whatever else is raised fails the test."""
    try:
        payloads.matching(expression)
    except Refusal as refusal:
        assert refusal.field == "payload_jq"
        return False
    return True


@pytest.fixture(scope="module")
def payloads() -> Payloads:
    return Payloads(['{"a": {"b": [1, "x", null]}}', r'{"a": "\u0061\u0000"}', "[]"])


def test_scrambled_expressions_are_understood_or_refused(payloads: Payloads) -> None:
    random = Random(1)
    words = [".", ".a", '"x"', "1", "-1e400", "null", "[", "]", "(", ")", ",", "|", "and", "or", "not", "in", "==", "<"]
    words += [
        "length",
        "type",
        "contains",
        "test",
        "has",
        '"("',
        "\ud800",
        '"\\ud800"',
        "\0",
        "é",
        "\\",
        "==",
        ".a",
        '."b"',
    ]
    understood = 0
    for _ in range(1000):
        understood += attempt(payloads, " ".join(random.choices(words, k=random.randint(1, 8))))
        whole = jq_plays.written(random, jq_plays.expression(random, depth=1))
        place, other = sorted(random.choices(range(len(whole) + 1), k=2))
        understood += attempt(payloads, whole[:place] + whole[other:])
    assert understood > 20


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused(payloads: Payloads, text: str) -> None:
    attempt(payloads, text)


def test_without_its_functions_a_connection_says_so() -> None:
    connection = sqlite3.connect(":memory:")
    compiled = jq.condition(".a == 1", sa.literal(r'{"\u0061": 1}')).compile(compile_kwargs={"literal_binds": True})

    with pytest.raises(sqlite3.OperationalError, match="corvo_matches"):
        connection.execute(f"SELECT {compiled}")
