"""`--watch`: a list, again and again.

On a terminal it has the whole screen. A server that is away leaves the last picture, marked as stale. Elsewhere one
answer follows the other, and an error ends the command.
"""

import functools
import inspect
import io
import itertools
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from typing import Annotated, Any

import typer

from corvo.cli.commands.requests import MISUSED

INTERVAL_S = 2.0
_FRESH = "\x1b[2m{}, every {} s; Ctrl-C ends\x1b[0m"
_STALE = "\x1b[33mstale at {}: {}\x1b[0m"

_FLAGS: dict[str, tuple[Any, Any]] = {
    "watch": (Annotated[bool, typer.Option("--watch", "-w", help="again and again, until Ctrl-C")], False),
    "interval": (
        Annotated[
            float, typer.Option("--interval", metavar="SECONDS", min=0.2, max=3600, help="between two looks of --watch")
        ],
        INTERVAL_S,
    ),
    "looks": (Annotated[int | None, typer.Option("-n", metavar="N", min=1, help="end --watch after N looks")], None),
}


def watchable(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags to a command that prints once and ends."""
    signature = inspect.signature(command)

    @functools.wraps(command)
    def run(*, watch: bool = False, interval: float = INTERVAL_S, looks: int | None = None, **fields: Any) -> None:
        if not watch:
            command(**fields)
            return
        try:
            if sys.stdout.isatty():
                _fill_the_screen(lambda: command(**fields), interval, looks)
            else:
                _follow(lambda: command(**fields), interval, looks, is_table=fields.get("output") == "table")
        except KeyboardInterrupt:
            return

    extra = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _FLAGS.items()
    ]
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()]
    run.__signature__ = signature.replace(parameters=[*own, *extra])  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {**command.__annotations__, **{one.name: one.annotation for one in extra}}
    return run


def _follow(look: Callable[[], None], interval_s: float, looks: int | None, is_table: bool) -> None:
    for number in itertools.count(1):
        look()
        sys.stdout.flush()
        if number == looks:
            return
        time.sleep(interval_s)
        if is_table:
            print()


def _fill_the_screen(look: Callable[[], None], interval_s: float, looks: int | None) -> None:
    screen = sys.stdout
    shown = ""
    with _whole_screen():
        for number in itertools.count(1):
            picture, trouble = _take(look)
            shown = shown if trouble else picture
            now = time.strftime("%H:%M:%S")
            head = _STALE.format(now, trouble) if trouble else _FRESH.format(now, f"{interval_s:g}")
            lines = [head, *shown.splitlines()][: max(_height() - 1, 2)]
            screen.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
            screen.flush()
            if number == looks:
                return
            time.sleep(interval_s)


class _Picture(io.StringIO):
    """Output that is drawn as on the terminal, colours and width included."""

    def isatty(self) -> bool:
        return True


def _take(look: Callable[[], None]) -> tuple[str, str]:
    """Picture and trouble. Wrong usage is no trouble that passes: it ends the command."""
    picture, complaint = _Picture(), io.StringIO()
    try:
        with redirect_stdout(picture), redirect_stderr(complaint):
            look()
    except typer.Exit as error:
        text = complaint.getvalue().strip()
        if error.exit_code == MISUSED:
            _restore()
            print(text, file=sys.stderr)
            raise
        return "", " ".join(text.split()) if error.exit_code else ""
    return picture.getvalue(), ""


def _height() -> int:
    import shutil  # lazy: only for a screen

    return shutil.get_terminal_size().lines


@contextmanager
def _whole_screen() -> Iterator[None]:
    """The other screen of the terminal, without a cursor; what was there before comes back."""
    before = signal.signal(signal.SIGTERM, _leave)
    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[2J")
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        _restore()


def _restore() -> None:
    sys.stdout.write("\x1b[?25h\x1b[?1049l")
    sys.stdout.flush()


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
