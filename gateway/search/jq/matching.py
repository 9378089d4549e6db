"""Regular expressions by RE2: linear time for every pattern, and bounded memory.

RE2 rejects patterns that a linear engine cannot run: backreferences, look-around, huge repetitions.
"""

from functools import lru_cache
from typing import Any

import re2

MEMORY_MAX = 1024 * 1024  # per pattern; one that needs more is refused
PATTERNS_KEPT = 64  # on top of the package's own cache of 128


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MEMORY_MAX
    options.never_capture = True
    options.log_errors = False
    return options


_OPTIONS = _options()


@lru_cache(PATTERNS_KEPT)
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern, _OPTIONS)


def refusal_of(pattern: str) -> str | None:
    """Why RE2 rejects the pattern, or None."""
    try:
        _compiled(pattern)
    except re2.error as error:
        words = error.args[0] if error.args else "it cannot be read"
        return words.decode(errors="replace") if isinstance(words, bytes) else str(words)
    return None


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text, as jq's `test` does. A lone surrogate is read as `?`."""
    return _compiled(pattern).search(text.encode(errors="replace")) is not None
