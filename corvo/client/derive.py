"""Writes `methods.py`: `python -m corvo.client.derive`. One typed method for each endpoint that answers with JSON.

A method is named after its endpoint. It takes the path's parameters, then the body, then what stands after the `?`. A
test fails while the file differs from what this module would write.
"""

import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import msgspec

from corvo.endpoint import Endpoint
from corvo.ops import ENDPOINTS as WRITES
from corvo.queries import ENDPOINTS as READS

PATH = Path(__file__).with_name("methods.py")
_HEAD = '''"""A method for each endpoint. Written by `python -m corvo.client.derive`: do not edit."""

from typing import TypeVar

from corvo.client.calls import HttpCall, call_of
{imports}

A = TypeVar("A")


class Methods:
    def call(self, call: HttpCall[A]) -> A:
        raise NotImplementedError
'''


def source() -> str:
    used: set[type] = set()
    methods = [_method(endpoint, used) for endpoint in (*WRITES, *READS) if endpoint.media == "application/json"]
    modules: dict[str, list[str]] = {}
    for kind in used:
        modules.setdefault(kind.__module__, []).append(kind.__name__)
    imports = "\n".join(f"from {module} import {_names(names)}" for module, names in sorted(modules.items()))
    return "\n".join([_HEAD.format(imports=imports), *methods])


def _method(endpoint: Endpoint, used: set[type]) -> str:
    parameters = re.findall(r"{(\w+)}", endpoint.path)
    signature = ["self", *(f"{name}: str" for name in parameters)]
    arguments = [f'"{endpoint.name}"']
    if endpoint.body is not None:
        used.add(endpoint.body)
        name = endpoint.body.__name__
        signature.append(f"body: {name} | None = None" if endpoint.body_optional else f"body: {name}")
        arguments.append("body")
    if endpoint.query is not None:
        used.add(endpoint.query)
        is_optional = all(not field.required for field in msgspec.structs.fields(endpoint.query))
        name = endpoint.query.__name__
        signature.append(f"query: {name} | None = None" if is_optional else f"query: {name}")
        arguments += ["query"] if endpoint.body is not None else ["None", "query"]
    arguments += [f"{name}={name}" for name in parameters]
    answers = " | ".join(dict.fromkeys(_type(answer, used) for answer in endpoint.answers.values()))
    head = f"    def {endpoint.name}({', '.join(signature)}) -> {answers}:"
    body = f"        return self.call(call_of({', '.join(arguments)}))"
    return "\n".join([head, f'        """{endpoint.summary}."""', body, ""])


def _type(kind: Any, used: set[type]) -> str:
    if kind is None or kind is type(None):
        return "None"
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return " | ".join(_type(member, used) for member in get_args(kind))
    if origin is not None:
        return f"{origin.__name__}[{', '.join(_type(member, used) for member in get_args(kind))}]"
    if kind.__module__ != "builtins":
        used.add(kind)
    return str(kind.__name__)


def _names(names: list[str]) -> str:
    return ", ".join(sorted(names))


def formatted(text: str) -> str:
    """As ruff would leave it. A tool of contributors: ruff is in their environment."""
    for command in (["check", "--fix-only", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(PATH), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    PATH.write_text(formatted(source()))
