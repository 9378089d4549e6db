"""Help in sections with whole lines, the version, and completion."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corvo import __version__
from corvo.cli import main
from corvo.cli.commands.help import SECTIONS, first_sentence
from corvo.cli.main import run


def test_commands_stand_in_sections_with_whole_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    assert run(["--help"]) == 0

    shown = capsys.readouterr().out
    assert [line[:-1] for line in shown.splitlines() if line[:-1] in SECTIONS] == list(SECTIONS)
    assert "..." not in shown.replace("[ARGS]...", "")
    assert " ".join(shown.split()).count("List all queues: jobs by state, rates, age of the oldest pending job") == 1


@pytest.mark.parametrize("group", ["bulk", "schedules", "queue", "job", "cluster", "batch", "local", "seed", "node"])
def test_groups_have_whole_lines_too(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([group, "--help"]) == 0

    assert "..." not in capsys.readouterr().out.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One line.\n\n\b\nExamples:", "One line"),
        ("Over two\nlines. And more.", "Over two lines"),
        ("No end\n\nNext", "No end"),
        ("read.db is kept.", "read.db is kept"),
        ("", ""),
    ],
)
def test_a_line_of_help_is_the_first_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_the_version_is_a_flag_and_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"corvo {__version__}\n"
    assert run(["version", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": __version__}


@pytest.mark.system
def test_a_shell_can_complete_commands() -> None:
    asked = {"_CORVO_COMPLETE": "complete_bash", "COMP_WORDS": "corvo que", "COMP_CWORD": "1"}

    shown = subprocess.run(
        [sys.executable, "-m", "corvo.cli.main"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(main.__file__).parents[2]), **asked},
    ).stdout

    assert shown.split() == ["queues", "queue"]
