"""`corvo completion`: the script that completes commands in a shell."""

import io
import os
from contextlib import redirect_stdout, suppress
from typing import Annotated, Literal

import typer

from corvo.cli.commands.requests import OutputFormat

ShellName = Literal["bash", "zsh", "fish"]
VARIABLE = "_CORVO_COMPLETE"  # typer reads it, and then prints the script or the completions instead of running


def completion(shell: Annotated[ShellName, typer.Argument(help="your shell")], output: OutputFormat = "table") -> None:
    """Print the script that completes commands, flags and contexts in a shell.

    `corvo --install-completion` writes it into the files of your shell instead.

    \b
    Examples:
      source <(corvo completion bash)
      corvo completion zsh > "${fpath[1]}/_corvo"
      corvo completion fish > ~/.config/fish/completions/corvo.fish
    """
    from corvo.cli.screen.show import answer, plain  # lazy: rich

    script = script_of(shell)
    if output == "table":
        print(script)
    else:
        answer({"shell": shell, "script": script}, output, lambda: plain(script))


def script_of(shell: str) -> str:
    """typer writes it for a program of this name, whatever its commands are."""
    asked = typer.Typer()
    asked.command()(lambda: None)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = f"source_{shell}"
    printed = io.StringIO()
    try:
        with redirect_stdout(printed), suppress(SystemExit):
            asked([], prog_name="corvo")
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before
    return printed.getvalue().strip()
