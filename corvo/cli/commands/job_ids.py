"""Job ids in text that other commands print: `corvo search` as JSON or as a table, JSON lines, or plain ids. Pure.

A bulk action on half of a list is worse than none. So a list that was cut off, and a page that names a next page, are
refused.
"""

import re
from typing import Any

import msgspec

from corvo.cli.commands.bodies import BadArgument
from corvo.model.limits import JOB_ID

TABLE_HEAD = "ID"  # first word of the table that `corvo search` prints
TABLE_END = re.compile(r"\d+ of (?:at least )?\d+ jobs\b")  # how its last line begins
SHOWN = 60  # characters of a line that is refused


def ids_in(text: str) -> list[str]:
    """Every id once, in order. Empty when the text is a list without jobs."""
    text = text.strip()
    if text[:1] in ("[", "{", '"'):
        found = _in_json(text)
    else:
        found = _in_lines(text.splitlines())
    return list(dict.fromkeys(found))


def _in_json(text: str) -> list[str]:
    try:
        content = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return _in_json_lines(text)
    if isinstance(content, dict) and isinstance(content.get("jobs"), list):
        if content.get("has_more"):
            raise BadArgument("standard input is one page of a longer list; `corvo search --all` prints all pages")
        content = content["jobs"]
    return [_id_of(one) for one in (content if isinstance(content, list) else [content])]


def _in_json_lines(text: str) -> list[str]:
    ids = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                ids.append(_id_of(msgspec.json.decode(line)))
            except msgspec.DecodeError:
                raise BadArgument(
                    f"standard input is neither whole JSON nor JSON lines (line {number}): was it cut off?"
                ) from None
    return ids


def _in_lines(lines: list[str]) -> list[str]:
    """A table of ours has a heading and a last line; without the last line the search has failed on the way."""
    is_table = bool(lines) and lines[0].split()[:1] == [TABLE_HEAD]
    body = [line for line in (lines[1:] if is_table else lines) if line.strip()]
    if is_table:
        ends = [number for number, line in enumerate(body) if TABLE_END.match(line)]
        if not ends:
            raise BadArgument("the table on standard input has no last line: was it cut off?")
        body = body[: ends[0]]
    return [_checked(line.split()[0], line) for line in body]


def _id_of(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("id", value.get("job_id"))
    return _checked(value, msgspec.json.encode(value).decode())


def _checked(value: Any, place: str) -> str:
    if not isinstance(value, str) or not JOB_ID.fullmatch(value):
        raise BadArgument(f"standard input has something that is no job id: {place[:SHOWN]}")
    return value
