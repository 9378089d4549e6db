"""Scenarios as data: what a step says, how variables are filled in, and whether an answer is as expected. Pure.

A scenario is a JSON file with a list of steps. `$name` in any text is a variable: `$q` is a queue of this run alone,
`save` sets others. An expectation names what must be there: an object may have more members, a list may not.
`"*"` accepts any value that is there; `{"$absent": true}` expects a member to be missing or null.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).parent / "scenarios"
_VARIABLE = re.compile(r"\$([a-z_][a-z0-9_]*)")


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    """What the proxy does to the next `times` requests that match."""

    match: str  # method and path, as a regular expression
    times: int = 1
    status: int = 0  # answered instead of the server
    retry_after_s: float | None = None
    cut: str = ""  # `before` the server has the request; `after`: its answer is lost; `midway`: behind one event


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """An endpoint, by its name. `expect` is of the answer, `refused` of the error."""

    name: str
    path: list[str] = []
    query: dict[str, Any] = {}
    body: Any = None
    expect: Any = None
    refused: dict[str, Any] | None = None
    save: dict[str, str] = {}  # variable → member of the answer, as a path with dots
    within_s: float = 0.0  # call it again until it is as expected
    deadline_ms: int = 0  # of the client, for all attempts


class Work(msgspec.Struct, forbid_unknown_fields=True):
    """Start a worker. Its handlers do what the payload of each job says (README.md)."""

    queues: list[str]
    transport: str = "http"
    concurrency: int = 4
    worker_id: str = "$worker"
    lease_s: int = 3


class Step(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One of these. `server` is a call of the runner itself, past the library and the proxy."""

    call: Call | None = None
    server: Call | None = None
    fault: Fault | None = None
    work: Work | None = None
    drain: bool = False  # as at SIGTERM
    kill: str = ""  # a process of the node: `gateway`
    events: dict[str, Any] | None = None  # query, and how many to read from the library's iterator
    expect: Any = None  # of `events`
    faults_used: int | None = None  # how many requests met a fault so far


class Scenario(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    part: str  # `client`, `events` or `worker`
    steps: list[Step]


def scenarios() -> dict[str, Scenario]:
    decode = msgspec.json.Decoder(Scenario).decode
    return {path.stem: decode(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))}


def fill(value: Any, variables: dict[str, Any]) -> Any:
    """With variables in place of their names. A text that is one variable becomes its value, whatever its type."""
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole and whole[1] in variables:
            return variables[whole[1]]
        return _VARIABLE.sub(lambda found: str(variables.get(found[1], found[0])), value)
    if isinstance(value, dict):
        return {fill(key, variables): fill(one, variables) for key, one in value.items()}
    if isinstance(value, list):
        return [fill(one, variables) for one in value]
    return value


def difference(expected: Any, found: Any, at: str = "answer") -> str:
    """Why `found` is not as expected, in a sentence; empty if it is."""
    if expected == "*":
        return f"{at} is missing" if found is None else ""
    if isinstance(expected, dict):
        if expected.get("$absent"):
            return "" if found is None else f"{at} is {found!r}, expected nothing"
        if not isinstance(found, dict):
            return f"{at} is {found!r}, expected an object"
        for name, one in expected.items():
            if wrong := difference(one, found.get(name), f"{at}.{name}"):
                return wrong
        return ""
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return f"{at} is {found!r}, expected {len(expected)} items"
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            if wrong := difference(one, other, f"{at}[{number}]"):
                return wrong
        return ""
    return "" if expected == found else f"{at} is {found!r}, expected {expected!r}"


def pick(value: Any, path: str) -> Any:
    """The member at a path such as `jobs.0.job_id`."""
    for piece in path.split("."):
        value = value[int(piece)] if isinstance(value, list) else value[piece]
    return value
