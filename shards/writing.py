"""How a replica waits for its disk: alone, it simply does; with others, it goes on listening to them.

A disk that is shared and busy may take a second for one sync. A replica that is silent for so long looks dead, so the
write is done by a thread, and whoever waits for it is called now and then to keep up its part of the talk.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

LISTEN_EVERY_S = 0.02  # well under a heartbeat; nearly every write is over sooner

Action = Callable[[], None]
Writing = Callable[[Action, Action], None]  # (write, meanwhile): returns when it is written


def at_once(write: Action, meanwhile: Action) -> None:
    write()


class InThread:
    """A `Writing` with one thread: at most one write is under way."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="disk")

    def __call__(self, write: Action, meanwhile: Action) -> None:
        writing = self._executor.submit(write)
        while not wait((writing,), LISTEN_EVERY_S).done:
            meanwhile()
        writing.result()

    def close(self) -> None:
        self._executor.shutdown()
