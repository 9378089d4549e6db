"""What an index may look for first: as much as is certain, and nothing else."""

import pytest

from gateway.search import jq


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('.email == "a@b.c"', ['"email"', '"a@b.c"']),
        ('.a.b[0]["c d"] == "x"', ['"a"', '"b"', '"c d"', '"x"']),
        (".amount > 100", ['"amount"']),
        (".amount == 100", ['"amount"']),  # or 1e2, or 100.0
        (".paid == true", ['"paid"', "true"]),
        (".paid", ['"paid"']),
        ('.tags | contains("vip")', ['"tags"', "vip"]),
        (".tags | contains(5)", ['"tags"']),
        ('.a | startswith("x")', ['"a"', '"x']),
        ('.a | endswith("x")', ['"a"', 'x"']),
        ('.a | test("xyz")', ['"a"']),
        ('.a | has("k")', ['"a"', '"k"']),
        (".a != null", ['"a"']),
        (".a < .b", ['"a"', '"b"']),
        ('.a in ["x"]', ['"a"', '"x"']),
        ('.a in ["x", "y"]', ['"a"']),
        ('.a == "x" and .b == "x"', ['"a"', '"x"', '"b"']),
        ('.a == "x" or .a == "y"', ['"a"']),
        ('.a == "x" or .b == "y"', []),
        # these fit payloads that lack the path
        (".a == null", []),
        (".a == .b", []),
        (".a != 1", []),
        ('.a in ["x", null]', []),
        (".a | length == 0", []),
        ('.a | type == "null"', []),
        ('not .a == "x"', []),
        ('.a == "x" | not', []),
        # what does not print is not looked for
        ('.a == "x\\u0000"', ['"a"']),
        ('. | contains("")', []),
    ],
)
def test_the_literals_of_an_expression(expression: str, expected: list[str]) -> None:
    assert jq.literals(expression) == expected
