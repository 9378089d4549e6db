"""Does an output look like the one in the document? Ids, moments and spaces may differ; ids are learnt.

An id in a document stands for the id that the server really gave: whoever matches binds it, and later blocks of the
page are rewritten. `…` stands for anything.
"""

import json
import re
from typing import Any

JOB_ID = re.compile(r"s\d\d_job_[0-9a-z]{26}")
_TOKENS = re.compile(
    r"(?P<id>s\d\d_job_[0-9a-z]{26})"
    r"|(?P<moment>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z)"
    r"|(?P<any>…)"
    r"|(?P<space>\s+)"
)
_PATTERNS = {
    "moment": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z",
    "any": r".*?",
    "space": r"\s+",
}

Bindings = dict[str, str]


def match_text(expected: str, actual: str, known: Bindings) -> Bindings | None:
    """The ids learnt, or None where the output looks different."""
    names: list[str] = []
    parts: list[str] = []
    at = 0
    expected = expected.strip()
    for token in _TOKENS.finditer(expected):
        parts.append(re.escape(expected[at : token.start()]))
        at = token.end()
        if token["id"] is None:
            parts.append(_PATTERNS[token.lastgroup or ""])
        elif token["id"] in known:
            parts.append(re.escape(known[token["id"]]))
        elif token["id"] in names:
            parts.append(rf"(?P=id{names.index(token['id'])})")
        else:
            parts.append(rf"(?P<id{len(names)}>{JOB_ID.pattern})")
            names.append(token["id"])
    parts.append(re.escape(expected[at:]))
    found = re.fullmatch("".join(parts), actual.strip(), re.DOTALL)
    if found is None:
        return None
    return {**known, **{name: found[f"id{number}"] for number, name in enumerate(names)}}


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
