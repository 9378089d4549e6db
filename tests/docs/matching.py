"""Does an output look like the one in the document? Ids, moments and spaces may differ; ids are learnt.

An id in a document stands for the id that the server really gave: whoever matches binds it, and later blocks of the
page are rewritten. `…` stands for anything, also for nothing.
"""

import json
import re
from typing import Any

JOB_ID = re.compile(r"(?:s\d\d_(?:job|batch|sched)|bulk)_[0-9a-z]{26}")  # or of a batch, a schedule, a bulk operation
_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z"
_TOKENS = re.compile(rf"(?P<id>{JOB_ID.pattern})|(?P<moment>{_MOMENT})")
_GAP = re.compile(r" ?(?:… ?)+")

Bindings = dict[str, str]


def match_text(expected: str, actual: str, known: Bindings) -> Bindings | None:
    """The ids learnt, or None where the output looks different."""
    actual = _evenly_spaced(actual)
    pieces = _GAP.split(_evenly_spaced(expected))
    at = 0
    for number, piece in enumerate(pieces):
        pattern, names = _pattern(piece, known)
        begins = r"\A" if number == 0 else ""
        ends = r"\Z" if number == len(pieces) - 1 else ""
        # What stands between two gaps is looked for once, from the left: no piece is tried in many places.
        found = re.compile(f"{begins}(?:{pattern}){ends}").search(actual, at)
        if found is None:
            return None
        at = found.end()
        known = {**known, **{name: found[f"id{group}"] for group, name in enumerate(names)}}
    return known


def _pattern(piece: str, known: Bindings) -> tuple[str, list[str]]:
    """And the ids that it will learn, by the number of their group."""
    names: list[str] = []
    parts: list[str] = []
    at = 0
    for token in _TOKENS.finditer(piece):
        parts.append(re.escape(piece[at : token.start()]))
        at = token.end()
        if token["id"] is None:
            parts.append(_MOMENT)
        elif token["id"] in known:
            parts.append(re.escape(known[token["id"]]))
        elif token["id"] in names:
            parts.append(rf"(?P=id{names.index(token['id'])})")
        else:
            parts.append(rf"(?P<id{len(names)}>{JOB_ID.pattern})")
            names.append(token["id"])
    return "".join([*parts, re.escape(piece[at:])]), names


def _evenly_spaced(text: str) -> str:
    return " ".join(text.split())


def rewritten(text: str, known: Bindings) -> str:
    return JOB_ID.sub(lambda match: known.get(match[0], match[0]), text)


def match_json(expected: str, actual: str, known: Bindings) -> Bindings | None:
    try:
        # Known ids first, because they also stand as keys; real ones then stand for themselves.
        itself = {real: real for real in known.values()}
        learnt = _match_value(json.loads(rewritten(expected, known)), json.loads(actual), known | itself)
        return None if learnt is None else {name: real for name, real in learnt.items() if name not in itself}
    except json.JSONDecodeError:
        return None


def _match_value(expected: Any, actual: Any, known: Bindings) -> Bindings | None:
    if expected == "…":
        return known
    if isinstance(expected, str) and isinstance(actual, str):
        return match_text(expected, actual, known)
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() - {"…"} != actual.keys() and not (
            "…" in expected and expected.keys() - {"…"} <= actual.keys()
        ):
            return None
        return _match_all([(expected[key], actual[key]) for key in expected if key != "…"], known)
    if isinstance(expected, list) and isinstance(actual, list):
        return _match_all(list(zip(expected, actual, strict=True)), known) if len(expected) == len(actual) else None
    return known if type(expected) is type(actual) and expected == actual else None


def _match_all(pairs: list[tuple[Any, Any]], known: Bindings) -> Bindings | None:
    for expected, actual in pairs:
        learnt = _match_value(expected, actual, known)
        if learnt is None:
            return None
        known = learnt
    return known
