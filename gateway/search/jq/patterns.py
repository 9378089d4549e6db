"""Translates an RE2 pattern into PostgreSQL's syntax, or refuses it.

Most of the syntax is the same. A construct that PostgreSQL lacks or reads differently is refused. RE2 has accepted the
pattern before, so it has no backreferences and no look-around. The query's time limit bounds PostgreSQL's matching.
"""

import re

from corvo.model.errors import invalid

_LEADING_FLAGS = re.compile(r"\(\?([a-z]+)\)")
# Only in RE2: named groups, inline flags, Unicode classes, quoting, single bytes, its own anchors.
_OF_RE2_ALONE = re.compile(r"\(\?(?!:)|\\[pPQECzAaxXhHRvVZGK]|\[\[:\^|\\[bB]")


def to_postgresql(pattern: str) -> str:
    """Adds PostgreSQL's flag `p`: as in RE2, a dot matches no line break, and `^` and `$` only match the ends."""
    flags = ""
    if found := _LEADING_FLAGS.match(pattern):
        flags, pattern = found[1], pattern[found.end() :]
    bad = _OF_RE2_ALONE.search(pattern)
    if bad is not None or set(flags) - set("ims"):
        part = f"(?{flags})" if bad is None else bad[0]
        raise invalid("payload_jq", f"PostgreSQL, which runs this search, does not support {part!r} in a pattern")
    lines = {"": "p", "m": "n", "s": "s", "ms": "w"}["".join(sorted(set(flags) & {"m", "s"}))]
    return f"(?{'i' if 'i' in flags else ''}{lines}){pattern}"
