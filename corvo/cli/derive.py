"""Writes `commands/derived.py`: `python -m corvo.cli.derive`. A command for each plain action on one job.

Plain: a POST to `/jobs/{job_id}/…` whose command is not written by hand in `commands/job.py`. Required fields of the
body are arguments, the others options. The source is written, not made at the start, because importing the operations
would double the time of `corvo --help`. A test fails while the file differs from what this module would write.
"""

import re
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from corvo.cli.commands import job
from corvo.cli.derive_client import formatted
from corvo.endpoint import Endpoint
from corvo.ops import ENDPOINTS

PATH = Path(__file__).parent / "commands" / "derived.py"
JOB = "s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8"
_ACTION = re.compile(r"/jobs/\{job_id\}/([a-z]+)")
_HEAD = '''"""`corvo job`: plain actions on one job. Written by `python -m corvo.cli.derive`: do not edit."""

from typing import {names}

import typer

from corvo.cli.commands.job import JobId, act, app
from corvo.cli.commands.requests import OutputFormat, PriorityName, ServerUrl
from corvo.client import DEFAULT_SERVER
'''


def source() -> str:
    by_hand = {vars(job)[name].__name__ for name in job.BY_HAND}
    actions = [
        (match[1], endpoint)
        for endpoint in ENDPOINTS
        if endpoint.method == "POST" and (match := _ACTION.fullmatch(endpoint.path)) and match[1] not in by_hand
    ]
    commands = [_command(name, endpoint) for name, endpoint in actions]
    names = "Annotated, Literal" if any("Literal[" in command for command in commands) else "Annotated"
    return "\n".join(
        [_HEAD.format(names=names), *commands, f"\nACTIONS = ({', '.join(name for name, _ in actions)})\n"]
    )


def _command(name: str, endpoint: Endpoint) -> str:
    fields = () if endpoint.body is None else msgspec.structs.fields(endpoint.body)
    ordered = sorted(fields, key=lambda field: not field.required)
    parameters = ["job_id: JobId", *map(_parameter, ordered)]
    parameters += ["server: ServerUrl = DEFAULT_SERVER", 'output: OutputFormat = "table"']
    values = ", ".join(f'"{field.encode_name}": {field.name}' for field in ordered)
    return "\n".join(
        [
            "",
            "@app.command()",
            f"def {name}(",
            *(f"    {parameter}," for parameter in parameters),
            ") -> None:",
            f'    """{endpoint.summary}.',
            "",
            "    \\b",
            "    Examples:",
            f"      corvo {name} {JOB}{_example(endpoint, ordered)}",
            f"      corvo job {name} {JOB}{_example(endpoint, ordered)}",
            '    """',
            f'    act("{endpoint.name}", {{{values}}}, job_id, server, output)',
            "",
        ]
    )


def _parameter(field: msgspec.structs.FieldInfo) -> str:
    kind, description = _kind(field.type)
    if field.name == "priority":
        kind = "PriorityName"  # with `low`, which the server does not know
    words = [f"help={description!r}"] if description else []
    if field.required:
        return f"{field.name}: Annotated[{kind}, typer.Argument({', '.join(words)})]"
    words.insert(0, f'"{_option(field)}"')
    if kind == "bool":
        if field.default:
            words[0] = f'"{_option(field)}/--no-{_option(field)[2:]}"'
        return f"{field.name}: Annotated[bool, typer.Option({', '.join(words)})] = {field.default}"
    return f"{field.name}: Annotated[{kind} | None, typer.Option({', '.join(words)})] = None"


def _option(field: msgspec.structs.FieldInfo) -> str:
    return f"--{field.encode_name.replace('_', '-')}"


def _kind(type_: Any) -> tuple[str, str]:
    """What typer reads, and its help. What may be a number or a text stays a text, until the body checks it."""
    description = ""
    if get_origin(type_) is Annotated:
        type_, *metas = get_args(type_)
        description = next((meta.description for meta in metas if getattr(meta, "description", None)), "")
    if get_origin(type_) in (Union, types.UnionType):
        members = [member for member in get_args(type_) if member is not type(None)]
        kind, inner = _kind(members[0]) if len(members) == 1 else ("str", "")
        return kind, description or inner
    if get_origin(type_) is Literal:
        return f"Literal[{', '.join(repr(choice) for choice in get_args(type_))}]", description
    return type_.__name__ if type_ in (bool, int, float) else "str", description


def _example(endpoint: Endpoint, fields: list[msgspec.structs.FieldInfo]) -> str:
    words = []
    for field in fields:
        value = (endpoint.example or {}).get(field.encode_name)
        if value is not None:
            shown = f"'{value}'" if " " in str(value) else str(value)
            words.append(shown if field.required else f"{_option(field)} {shown}")
    return "".join(f" {word}" for word in words)


if __name__ == "__main__":
    PATH.write_text(formatted(source(), PATH))
