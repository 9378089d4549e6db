"""Globs over names of queues, as `fnmatch.fnmatchcase` reads them, and the same globs for SQL. Pure.

A key's scope is a list of globs. Most paths compare names in Python. Lists are read with SQL, whose dialects read sets
(`[a-c]`) in other ways. So a glob is taken apart here, and each set is spelled out over the characters that a name can
have (`QUEUE_NAME`).
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-"  # of names

# A piece of a glob: any text, or one character out of these.
ANY_TEXT = None
Piece = frozenset[str] | None
_ANY = frozenset(ALPHABET)


def is_in_scope(name: str, scope: Iterable[str]) -> bool:
    """Whether a name, as its tenant knows it, matches one of the globs."""
    return any(fnmatchcase(name, glob) for glob in scope)


@lru_cache(maxsize=1024)
def pieces(glob: str) -> tuple[Piece, ...]:
    """An empty set matches nothing: the glob demands a character that no name has."""
    found: list[Piece] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        end = _end_of_set(glob, at) if char == "[" else at + 1
        if char == "*":
            if not found or found[-1] is not ANY_TEXT:
                found.append(ANY_TEXT)
        elif char == "?":
            found.append(_ANY)
        elif end > at + 1:
            found.append(frozenset(one for one in ALPHABET if fnmatchcase(one, glob[at:end])))
        else:
            found.append(frozenset(char) & _ANY)
        at = end
    return tuple(found)


def _end_of_set(glob: str, at: int) -> int:
    """Behind the set that begins here; behind the bracket alone, where none ends the set."""
    first = at + 1
    if glob[first : first + 1] == "!":
        first += 1
    end = glob.find("]", first + 1 if glob[first : first + 1] == "]" else first)
    return end + 1 if end >= 0 else at + 1


def to_sqlite(glob: str) -> str | None:
    """For the operator GLOB. None: no name matches."""
    parts = [_sqlite_piece(piece) for piece in pieces(glob)]
    return None if "" in parts else "".join(parts)


def _sqlite_piece(piece: Piece) -> str:
    if piece is ANY_TEXT:
        return "*"
    if len(piece) == len(ALPHABET):
        return "?"
    if len(piece) == 1:
        return next(iter(piece))
    return f"[{_spelled(piece)}]" if piece else ""


def to_regex(glob: str) -> str | None:
    """For PostgreSQL's operator ~. None: no name matches."""
    parts = [_regex_piece(piece) for piece in pieces(glob)]
    return None if "" in parts else f"^{''.join(parts)}$"


def _regex_piece(piece: Piece) -> str:
    if piece is ANY_TEXT:
        return ".*"
    return f"[{_spelled(piece)}]" if piece else ""


def _spelled(chars: frozenset[str]) -> str:
    """A hyphen comes last, where it is no range."""
    return "".join(sorted(chars - {"-"})) + ("-" if "-" in chars else "")
