"""Every security case has its line, and every test that a line names exists."""

import ast
from functools import cache

import pytest

from docs.security.page import CASES
from docs.security.rows import Case
from tests.tidy.house import ROOT

UNSHOWN = ("not built", "open")


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def faults(case: Case) -> list[str]:
    found = [
        f"{case.name} names {test}, which does not exist"
        for test in case.tests
        if test.partition("::")[2] not in names_in(test.partition("::")[0])
    ]
    if bool(case.tests) is (case.status in UNSHOWN):
        found.append(f"{case.name} is {case.status} with {len(case.tests)} tests")
    return found


def test_all_ninety_five_are_there_in_order() -> None:
    assert [case.number for case in CASES] == list(range(1, 96))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_tests_of_a_case_exist(case: Case) -> None:
    assert faults(case) == []


def test_a_test_that_is_gone_is_caught() -> None:
    good = CASES[0]

    assert faults(good._replace(tests=(good.tests[0] + "_x",)))
    assert faults(good._replace(tests=()))
    assert faults(good._replace(status="not built"))
