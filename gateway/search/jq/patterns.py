"""A pattern of RE2 in the words of PostgreSQL, or a refusal.

Most of both languages is the same. What differs and has no counterpart is refused rather than taken for something else.
RE2 has read the pattern before: there are no backreferences and no look-around, and PostgreSQL's automaton takes time
that the question's budget bounds.
"""

import re

from corvo.model.errors import invalid

_LEADING_FLAGS = re.compile(r"\(\?([a-z]+)\)")
# Named groups, flags in the middle, classes of Unicode, quoting, single bytes, ends in other words; of RE2 alone.
_OF_RE2_ALONE = re.compile(r"\(\?(?!:)|\\[pPQECzAaxXhHRvVZGK]|\[\[:\^|\\[bB]")


def to_postgresql(pattern: str) -> str:
    """With PostgreSQL's own flags in front: `p`, as in RE2 a dot is no line break and `^` and `$` are the very ends."""
    flags = ""
    if found := _LEADING_FLAGS.match(pattern):
        flags, pattern = found[1], pattern[found.end() :]
    bad = _OF_RE2_ALONE.search(pattern)
    if bad is not None or set(flags) - set("ims"):
        part = f"(?{flags})" if bad is None else bad[0]
        raise invalid("payload_jq", f"{part!r} in a pattern of test is not known to PostgreSQL, which searches here")
    lines = {"": "p", "m": "n", "s": "s", "ms": "w"}["".join(sorted(set(flags) & {"m", "s"}))]
    return f"(?{'i' if 'i' in flags else ''}{lines}){pattern}"
