"""Completion in the shells that are there: the script is sourced, and asked for completions."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from corvo.cli import main
from corvo.cli.main import run

# What a person does: source the script, type, press the key. Prints a completion a line.
BASH = """
source <(corvo completion bash)
COMP_WORDS=(corvo {words}); COMP_CWORD={at}
_corvo_completion corvo
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
autoload -U compinit && compinit -u -d {folder}/zcompdump
source <(corvo completion zsh)
[[ -n "$_comps[corvo]" ]] && _CORVO_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS="corvo {words}" corvo
"""
FISH = 'corvo completion fish | source; complete --do-complete "corvo {words}"'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With `corvo` on the PATH, and one context."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "corvo"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m corvo.cli.main "$@"\n')
    command.chmod(0o755)
    (tmp_path / "corvo").mkdir()
    (tmp_path / "corvo" / "contexts.json").touch(0o600)
    contexts = {"current": "", "contexts": {"prod-eu": {"server": "http://x"}}}
    (tmp_path / "corvo" / "contexts.json").write_text(json.dumps(contexts))
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("CORVO_")},
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(main.__file__).parents[2]),
        "XDG_CONFIG_HOME": str(tmp_path),
        "HOME": str(tmp_path),
    }


def in_shell(shell: str, script: str, environment: dict[str, str]) -> str:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    options = {"bash": ["--noprofile", "--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [path, *options, "-c", script], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.system
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["que"], ["queues", "queue"]),
        (["bulk", "re"], ["retry", "requeue", "reject"]),
        (["queues", "--outp"], ["--output", "--output-json"]),
        (["context", "use", "pro"], ["prod-eu"]),
    ],
)
def test_bash(words: list[str], expected: list[str], environment: dict[str, str]) -> None:
    shown = in_shell("bash", BASH.format(words=" ".join(words), at=len(words)), environment)

    assert shown.split() == expected


@pytest.mark.system
def test_zsh(environment: dict[str, str], tmp_path: Path) -> None:
    assert "queues" in in_shell("zsh", ZSH.format(words="que", folder=tmp_path), environment)


@pytest.mark.system
def test_fish(environment: dict[str, str]) -> None:
    assert "queues" in in_shell("fish", FISH.format(words="que"), environment)


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete "), ("zsh", "#compdef corvo"), ("fish", "complete ")])
def test_each_shell_has_its_script(shell: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert word in script and "_CORVO_COMPLETE" in script

    assert run(["completion", shell, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": shell, "script": script.strip()}
    assert "_CORVO_COMPLETE" not in os.environ
