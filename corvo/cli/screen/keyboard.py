"""Keys from the terminal, one at a time and without waiting; the terminal is put back whatever happens."""

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Self


class Keyboard:
    """A context: inside it keys arrive at once and unechoed. Ctrl-C stays a signal. Without a terminal on standard
    input there are simply no keys."""

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno() if sys.stdin.isatty() else -1
        self._saved: list[Any] = []  # termios' own form of a terminal's modes

    def __enter__(self) -> Self:
        if self._descriptor >= 0:
            self._saved = termios.tcgetattr(self._descriptor)
            tty.setcbreak(self._descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._saved:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._saved)

    def wait(self, seconds: float) -> str:
        """The keys pressed until then, at the first of them; nothing when the time is over."""
        watched = [self._descriptor] if self._descriptor >= 0 else []
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        return os.read(self._descriptor, 64).decode(errors="replace") if ready else ""
