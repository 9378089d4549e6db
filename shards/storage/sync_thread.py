"""How a replica waits for its disk: alone, it blocks; with others, it goes on reading their messages.

A disk that is shared and busy may take a second for one sync. A replica that is silent for that long looks dead. So a
thread does the write, and the replica answers heartbeats meanwhile.
"""

from collections.abc import Callable
from threading import Lock, Thread

LISTEN_EVERY_S = 0.02  # well under a heartbeat; nearly every write is over sooner

Action = Callable[[], None]
Writing = Callable[[Action, Action], None]  # (write, meanwhile): returns when it is written


def at_once(write: Action, meanwhile: Action) -> None:
    write()


class SyncThread:
    """A `Writing` with one thread: at most one write is under way.

    Two locks handed back and forth, not an executor: every entry is written this way, and its futures and conditions
    took a tenth of a replica's time.
    """

    def __init__(self, beat: Action = lambda: None) -> None:
        """`beat` is called while a write takes long: the loop does not turn then, but it does not hang either."""
        self._beat = beat
        self._write: Action | None = None  # None ends the thread
        self._error: BaseException | None = None
        self._begun, self._done = Lock(), Lock()
        self._begun.acquire()
        self._done.acquire()
        self._thread = Thread(target=self._run, name="disk", daemon=True)
        self._thread.start()

    def __call__(self, write: Action, meanwhile: Action) -> None:
        self._write = write
        self._begun.release()
        while not self._done.acquire(timeout=LISTEN_EVERY_S):
            self._beat()
            meanwhile()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close(self) -> None:
        self._write = None
        self._begun.release()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._begun.acquire()
            write, self._write = self._write, None
            if write is None:
                return
            try:
                write()
            except BaseException as error:  # raised again in the thread that waits
                self._error = error
            self._done.release()
