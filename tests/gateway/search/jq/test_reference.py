"""docs/reference/payload-jq.md says what is so."""

import re

import pytest

from corvo.model import limits
from gateway.search.jq.matching import MEMORY_MAX
from tests.docs.pages import ROOT, blocks
from tests.gateway.search.jq.database import is_match

PAGE = (ROOT / "docs" / "reference" / "payload-jq.md").read_text()
PAYLOAD, EXAMPLES, _GRAMMAR = [block.text for block in blocks(PAGE)]


@pytest.mark.parametrize("line", EXAMPLES.splitlines())
def test_the_examples_are_true(line: str) -> None:
    expression, expected = re.fullmatch(r"(.*?) +# (true|false)", line).groups()  # type: ignore[union-attr]

    assert is_match(expression, PAYLOAD) is (expected == "true")


@pytest.mark.parametrize(
    ("row", "limit"),
    [
        ("the expression | {:,} bytes of UTF-8", limits.JQ_BYTES_MAX),
        ("its words and signs | {}", limits.JQ_TOKENS_MAX),
        ("nested parentheses and negations | {}", limits.JQ_DEPTH_MAX),
        ("values of a list after `in` | {}", limits.JQ_LIST_MAX),
        ("memory for one regular expression | {} MiB", MEMORY_MAX // 2**20),
    ],
)
def test_the_limits_are_those_of_the_code(row: str, limit: int) -> None:
    assert f"| {row.format(limit)} |" in PAGE
