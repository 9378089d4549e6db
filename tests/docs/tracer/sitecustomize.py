"""Records which functions of ours a process calls, while a test wants to know it.

Python imports this module at its start when its folder is in PYTHONPATH. A line is a moment, the process's module, the
file and the function. Recording is on while the file `on` in the trace folder holds a 1: a shared page of memory, so
that it takes effect in all processes at once.
"""

import mmap
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

FOLDER = os.environ.get("CORVO_TRACE_FOLDER")
ROOT = f"{Path(__file__).parents[3]}/"
PACKAGES = tuple(f"{ROOT}{package}/" for package in ("corvo", "shards", "gateway"))


def start(folder: Path) -> None:
    module = sys.orig_argv[sys.orig_argv.index("-m") + 1] if "-m" in sys.orig_argv else ""
    with (folder / "on").open("rb") as switch:
        is_on = mmap.mmap(switch.fileno(), 1, prot=mmap.PROT_READ)
    output = os.open(folder / f"{os.getpid()}.trace", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def record(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and is_on[0] and frame.f_code.co_filename.startswith(PACKAGES):
            code = frame.f_code
            path = code.co_filename.removeprefix(ROOT)
            os.write(output, f"{time.monotonic_ns()} {module} {path} {code.co_qualname}\n".encode())

    threading.setprofile(record)
    sys.setprofile(record)


if FOLDER is not None:
    start(Path(FOLDER))
