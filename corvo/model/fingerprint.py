"""Fingerprints that group equal errors: the first line of the text, with placeholders for the parts that vary.

    dial tcp 10.1.2.3:5432: timeout after 30.5 s     →  dial tcp <address>: timeout after <number> s
    job s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 is gone   →  job <id> is gone
    KeyError: 'user-17'                              →  KeyError: <text>

A placeholder holds no character that a pattern matches, so a fingerprint of a fingerprint is the same text. Only the
start of a line is read, and no pattern looks at a character more than a few times.

read.db stores fingerprints: after a change here, raise `ROWS_VERSION` in `gateway/readdb/schema.py`.
"""

import re
from functools import lru_cache
from hashlib import blake2b

LINE_CHARS_MAX = 400

# In this order: the first pattern that matches at a position wins. A quote or a run of hexadecimal digits beside a word
# or a placeholder is part of something else, and is left alone.
_VARYING = {
    "word": r"(?<!\w)[a-f]*+[g-z][a-z]*+(?!\w)",  # does not vary; matched so that it is skipped in one step
    "text": r"""
        "[^"]*" | `[^`]*` | “[^”]*” | (?<![\w>])'[^']*'(?![\w<])
        """,
    "uuid": r"(?<![\w>])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w<])",
    "address": r"""
        (?<![\w.>])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?(?![\w<]|\.\w)
        | (?<![\w:>])\[?[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){3,7}\]?(?::\d{1,5})?(?![\w<])
        """,
    "hex": r"(?<![\w>])0x[0-9a-f]+(?![\w<]) | (?<![\w>])(?=[a-f]*\d)[0-9a-f]{8,}(?![\w<])",
    "id": r"(?<![\w>])(?=(?:[a-z_]*\d){4})\w{16,}(?![\w<])",
    "number": r"\d+(?:[.,:]\d+)*",
}
_PATTERN = re.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _VARYING.items()), re.ASCII | re.IGNORECASE | re.VERBOSE
)


_PLACEHOLDERS = {kind: f"<{kind}>" for kind in _VARYING}


def simplify(error: str) -> str:
    """The first line that is not blank, with placeholders for the parts that vary."""
    return _simplify(_first_line(error))


def fingerprint(error: str) -> str:
    return _fingerprint(_first_line(error))


def _first_line(error: str) -> str:
    return next((line for line in map(str.strip, error.splitlines()) if line), "")[:LINE_CHARS_MAX]


@lru_cache(maxsize=4096)  # most errors repeat an earlier one
def _fingerprint(line: str) -> str:
    return blake2b(_simplify(line).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _simplify(line: str) -> str:
    text = ""
    while text != line:
        text = line
        line = " ".join(_PATTERN.sub(_placeholder, text[:LINE_CHARS_MAX]).split())
    return text


def _placeholder(match: re.Match[str]) -> str:
    kind = match.lastgroup
    assert kind is not None
    return match[0] if kind == "word" else _PLACEHOLDERS[kind]
