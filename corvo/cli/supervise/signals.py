"""The signals that ask a command to end, heeded for as long as a block runs."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def stop_signals() -> list[signal.Signals]:
    """A closed terminal counts too, unless the command was started to outlive it (nohup)."""
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return numbers


@contextmanager
def heeding(receive: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, receive) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
