"""Reads the whole database once after a start, beside the work, so that damage is found now and not at a failover.

LevelDB checks a block when it is read, and old jobs may not be read for months. A start must not wait for a million of
them, so this is the shard's only other thread. It reads slowly, writes nothing, and only leaves word.
"""

import threading

from corvo.model.errors import Corrupt
from shards.storage.leveldb import Disk

RECORDS_A_STEP = 512
PAUSE_S = 0.005  # between steps: at most some hundred thousand records a second, and the lock is free for the work


class Scrub:
    def __init__(self, disk: Disk) -> None:
        self.fault = ""  # set once, when something is found
        self.is_done = False
        self._disk = disk
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scrub", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """To be called before the database is closed."""
        self._is_stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def turn(self, now_ns: int) -> None:
        """`Corrupt` when something was found."""
        if self.fault:
            raise Corrupt(self.fault)

    def next_ns(self) -> int | None:
        return None  # the loop takes a turn every second at least

    def _run(self) -> None:
        try:
            for number, _ in enumerate(self._disk.scan(b"", b"\xff")):
                if number % RECORDS_A_STEP == 0 and self._is_stopping.wait(PAUSE_S):
                    return
            self.is_done = True
        except Corrupt as damage:
            self.fault = str(damage)
