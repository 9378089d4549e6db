"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable
from typing import Any


def eventually(is_so: Callable[[], Any], what: str = "", within_s: float = 8.0) -> Any:
    """Wait for a condition, never for a duration."""
    deadline = time.monotonic() + within_s
    while True:
        found = is_so()
        if found:
            return found
        assert time.monotonic() < deadline, f"never came true: {what or is_so}"
        time.sleep(0.005)
