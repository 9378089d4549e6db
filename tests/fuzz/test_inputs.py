"""What fuzzing begins from, and what it found: each input plays here too, without a fuzzer."""

from pathlib import Path

import pytest

from tests.fuzz import run
from tests.fuzz.targets import TARGETS, kept


@pytest.mark.parametrize("name", TARGETS)
def test_the_beginnings_break_no_promise(name: str) -> None:
    begun = TARGETS[name].beginnings()
    for data in begun:
        TARGETS[name].play(data)
        TARGETS[name].play(data[: len(data) // 2])
    assert len(begun) > 5


@pytest.mark.parametrize("path", [path for name in TARGETS for path in kept(name)], ids=lambda path: path.name)
def test_an_input_that_was_found_breaks_no_promise_now(path: Path) -> None:
    TARGETS[path.parent.name].play(path.read_bytes())


def test_each_target_can_be_run() -> None:
    assert run.READS.keys() == TARGETS.keys()
