"""The library under test, as a process: one JSON object a line in, one out (README.md)."""

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import msgspec

ANSWER_S = 60.0
END_S = 10.0


class HarnessFailed(Exception):
    """The harness did not answer, or not in our words: a sentence."""


class Harness:
    def __init__(self, command: Sequence[str], folder: Path, environ: dict[str, str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self._log = log
        self._lines: Queue[bytes] = Queue(1_000)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._number = 0

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """The answer: `answer` or `error` is in it."""
        self._number += 1
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode({"id": self._number, "do": do, **fields}) + b"\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=ANSWER_S)
        except Empty:
            raise HarnessFailed(f"no answer to {do!r} within {ANSWER_S:g} s; see {self._log}") from None
        except OSError:
            line = b""
        if not line:
            raise HarnessFailed(f"the harness ended; see {self._log}")
        answer = msgspec.json.decode(line, type=dict[str, Any])
        if answer.get("id") != self._number:
            raise HarnessFailed(f"an answer to {answer.get('id')}, expected {self._number}: {line[:200]!r}")
        return answer

    def end(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_S)
        self._reader.join(END_S)
