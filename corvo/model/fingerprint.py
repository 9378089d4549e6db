"""Which errors are the same: the first line of the text, without what differs from one time to the next.

    dial tcp 10.1.2.3:5432: timeout after 30.5 s     →  dial tcp <address>: timeout after <number> s
    job s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 is gone   →  job <id> is gone
    KeyError: 'user-17'                              →  KeyError: <text>

Whatever is put in a placeholder's place holds none of the characters that are looked for, so simplifying ends, and what
is simple stays as it is. Only so much of a line is read; no pattern looks at a character more than a few times.

read.db keeps fingerprints: whoever changes what counts as the same raises `ROWS_VERSION` in `gateway/readdb/schema.py`.
"""

import re
from functools import lru_cache
from hashlib import blake2b

LINE_CHARS_MAX = 400

# In this order: the first that fits at a place takes it. A word or a placeholder beside a quote, or beside letters that
# look like a number in hexadecimal, means that they are part of something else.
_VARYING = {
    "word": r"(?<!\w)[a-f]*+[g-z][a-z]*+(?!\w)",  # varies in nothing, but is passed over in one step
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
    """The first line that says anything, with placeholders for what varies."""
    return _simplify(_first_line(error))


def fingerprint(error: str) -> str:
    return _fingerprint(_first_line(error))


def _first_line(error: str) -> str:
    return next((line for line in map(str.strip, error.splitlines()) if line), "")[:LINE_CHARS_MAX]


@lru_cache(maxsize=4096)  # of a hundred errors most are one
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
