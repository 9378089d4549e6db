"""What is typed after `/`: the filters of `POST /api/v1/jobs/search`, as words or as JSON. Pure.

    queue=mail state=dead,retrying tags.tenant=acme attempt_min=2 created_after=1h timeout

A word without `=` is searched in the payload. `tags.tier:=1` compares with a number or a boolean, as `--tag` does.
"""

import shlex
from typing import Any

import msgspec

from corvo.cli.screen.top.jobs import ASKED
from corvo.client.bodies import SearchBody
from corvo.model.json_input import validation_refusal
from corvo.model.timestamps import parse_duration, to_rfc3339

JOBS_MAX = 200  # of a page: more than any screen has lines
_PAGING = frozenset({"sort", "order", "cursor", "limit", "consistent"})  # the view's own
FIELDS = tuple(name for name in SearchBody.__struct_fields__ if name not in _PAGING)
_MOMENTS = ("_after", "_before")


class BadFilter(ValueError):
    """A sentence about what was typed."""


def parse_filter(text: str, now_ns: int) -> dict[str, Any]:
    """Fields of a search body."""
    fields = _from_json(text) if text.lstrip().startswith("{") else _from_words(text, now_ns)
    for name in fields:
        if name not in FIELDS:
            raise BadFilter(f"there is no filter {name!r}; filters are {', '.join(FIELDS)}")
    try:
        msgspec.convert(fields, SearchBody, strict=False)
    except msgspec.ValidationError as error:
        raise BadFilter(validation_refusal(error, SearchBody).message) from None
    return fields


def search_of(pane: str, text: str, sort: str | None, is_reversed: bool, now_ns: int) -> SearchBody:
    """The search of a pane of jobs: its own states and order, unless the filter or the sort says otherwise."""
    asked = ASKED[pane]
    fields: dict[str, Any] = {"sort": asked.sort, "order": asked.order, "limit": JOBS_MAX}
    if asked.states:
        fields["state"] = list(asked.states)
    if sort is not None:
        fields |= {"sort": sort, "order": "desc" if is_reversed else "asc"}
    return msgspec.convert({**fields, **parse_filter(text, now_ns)}, SearchBody, strict=False)


def word(field: str, value: str) -> str:
    """One filter as it would be typed."""
    return f"{field}={shlex.quote(value)}"


def _from_json(text: str) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BadFilter(f"the filter is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadFilter('the filter is no object, such as {"queue": "mail"}')
    return fields


def _from_words(text: str, now_ns: int) -> dict[str, Any]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadFilter(f"the filter cannot be read: {str(error).lower()}") from None
    fields: dict[str, Any] = {}
    bare = []
    for one in words:
        name, equals, value = one.partition("=")
        if not equals:
            bare.append(one)
        elif name.startswith("tags."):
            key, tag = _tag(name.removeprefix("tags."), value)
            fields.setdefault("tags", {})[key] = tag
        elif not value:
            raise BadFilter(f"{name}= has no value")
        elif name == "state":
            fields["state"] = value.split(",")
        elif name.endswith(_MOMENTS):
            fields[name] = _moment(value, now_ns)
        else:
            fields[name] = value
    if bare:
        fields["payload_contains"] = " ".join(bare)
    return fields


def _tag(key: str, value: str) -> tuple[str, Any]:
    if not key.endswith(":"):
        return key, value
    try:
        return key[:-1], msgspec.json.decode(value)
    except msgspec.DecodeError:
        raise BadFilter(f"tags.{key}={value}: after := stands a number, true or false") from None


def _moment(value: str, now_ns: int) -> str:
    """A span, such as 1h, is so long ago. The rest is left to the server."""
    try:
        return to_rfc3339(now_ns - parse_duration(value) * 1_000_000)
    except ValueError:
        return value
