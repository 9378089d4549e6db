"""Writes what the client knows of the endpoints: `python -m corvo.cli.derive_client`.

    bodies.py    what is sent: bodies, and what stands after the `?`
    answers.py   what comes back
    routes.py    method, path and answers of each endpoint; the codes of refusals
    methods.py   one typed method for each endpoint that answers with JSON; async_methods.py  the same, to await
    refusals.py  an exception for each code of a refusal

The client is installed without the server (`sdk/python`), so it has copies of the types, not the types. A copy leaves
out what only the server uses: limits, checks, methods. A document is any value in a copy, raw bytes on the server. A
test fails while a file differs from what this module would write.
"""

import inspect
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import FieldInfo

from corvo.endpoint import Body, Endpoint
from corvo.model.errors import RETRYABLE, STATUS
from corvo.ops import ENDPOINTS as WRITES
from corvo.queries import ENDPOINTS as READS
from corvo.queries.events import Gap

FOLDER = Path(__file__).parents[1] / "client"
ALL: tuple[Endpoint, ...] = (*WRITES, *READS)
_WRITTEN = "Written by `python -m corvo.cli.derive_client`: do not edit."
_COMMENT_CHARS = 114
_IN_STREAMS = (Gap,)  # answered by no endpoint alone


def source_of_bodies() -> str:
    head = f'''"""What a client sends. {_WRITTEN}

A field that is left at its default is not sent. Documents (payload, tags, result and so on) are any value that msgspec
can write as JSON, or JSON itself as `msgspec.Raw`.
"""

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field


class Body(Struct, forbid_unknown_fields=True):
    """A body of a request, or a part of one. Made from JSON, it refuses unknown fields, as the server does."""
'''
    return "\n\n".join([head, *map(_struct, _sent())])


def source_of_answers() -> str:
    head = f'''"""What a server answers. {_WRITTEN}

Fields that a newer server adds are ignored.
"""

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field
'''
    return "\n\n".join([head, *map(_struct, _answered())])


def source_of_routes() -> str:
    rows = "\n".join(
        f"    {endpoint.name!r}: Route({endpoint.method!r}, {endpoint.path!r}, "
        f"{'None' if endpoint.body is None else endpoint.body.__name__}, {_answers(endpoint)}"
        f", {endpoint.wait_s!r}, {_repeats(endpoint)!r}),"
        for endpoint in ALL
    )
    sent = {endpoint.body.__name__ for endpoint in ALL if endpoint.body is not None}
    used = [kind for kind in _answered() if any(_names(answer) >= {kind.__name__} for answer in _all_answers())]
    return f'''"""Where each request goes, and the codes of refusals. {_WRITTEN}"""

from typing import Any, Literal, NamedTuple

from .answers import {", ".join(sorted(kind.__name__ for kind in used))}
from .bodies import Body, {", ".join(sorted(sent))}


# Whether a request may be sent again when no answer came; `by key`: with the same `Idempotency-Key`.
Repeats = Literal["freely", "by key", "never"]


class Route(NamedTuple):
    method: str
    path: str  # below /api/v1, with {{parameters}}
    body: type[Body] | None
    answers: dict[int, Any]  # status → type of the answer; None: an empty one
    wait_s: float  # how long the server may delay the answer on purpose
    repeats: Repeats


ROUTES: dict[str, Route] = {{
{rows}
}}

CODES = frozenset({sorted(STATUS)!r})
RETRYABLE = frozenset({sorted(RETRYABLE)!r})  # the request changed nothing, and may succeed later
'''


def source_of_methods(is_async: bool = False) -> str:
    endpoints = [endpoint for endpoint in ALL if endpoint.media == "application/json"]
    sent = {kind.__name__ for endpoint in endpoints for kind in (endpoint.body, endpoint.query) if kind is not None}
    answered = set().union(*(_names(answer) for endpoint in endpoints for answer in endpoint.answers.values()))
    maybe_async = "async " if is_async else ""
    head = f'''"""A method for each endpoint{", to await" if is_async else ""}. {_WRITTEN}"""

from typing import TypeVar

from .answers import {", ".join(sorted(answered))}
from .bodies import {", ".join(sorted(sent))}
from .calls import HttpCall, call_of

A = TypeVar("A")


class {"AsyncMethods" if is_async else "Methods"}:
    {maybe_async}def call(self, call: HttpCall[A]) -> A:
        raise NotImplementedError
'''
    return "\n".join([head, *(_method(endpoint, is_async) for endpoint in endpoints)])


def source_of_async_methods() -> str:
    return source_of_methods(is_async=True)


def source_of_refusals() -> str:
    """A code that is named like its group is the group."""
    named = {code: _camel(code) for code in STATUS}
    own = [(code, name) for code, name in named.items() if name != _group(STATUS[code])]
    classes = [f"class {name}({_group(STATUS[code])}):\n    pass\n" for code, name in own]
    rows = "\n".join(f"    {code!r}: {name}," for code, name in named.items())
    groups = sorted({*_GROUPS.values(), "InvalidRequest", "Unavailable"})
    head = f'''"""An exception for each code of a refusal. {_WRITTEN}"""

from .errors import {", ".join(groups)}, ServerRefused
'''
    tail = f'''
CLASSES: dict[str, type[ServerRefused]] = {{
{rows}
}}
_OF_STATUS: dict[int, type[ServerRefused]] = {{
{"".join(f"    {status}: {name}," for status, name in _GROUPS.items())}
}}


def class_of(code: str, status: int) -> type[ServerRefused]:
    """For a code that is not known here, the group of its status."""
    by_range = Unavailable if status >= 500 else InvalidRequest if status >= 400 else ServerRefused
    return CLASSES.get(code) or _OF_STATUS.get(status) or by_range
'''
    return "\n\n".join([head, *classes, tail])


_GROUPS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 429: "TooManyRequests"}


def _group(status: int) -> str:
    return _GROUPS.get(status) or ("Unavailable" if status >= 500 else "InvalidRequest")


def _camel(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_"))


FILES: dict[str, Callable[[], str]] = {
    "bodies.py": source_of_bodies,
    "answers.py": source_of_answers,
    "routes.py": source_of_routes,
    "methods.py": source_of_methods,
    "async_methods.py": source_of_async_methods,
    "refusals.py": source_of_refusals,
}


# Structs


def _sent() -> list[type[msgspec.Struct]]:
    return _with_parts(kind for endpoint in ALL for kind in (endpoint.body, endpoint.query))


def _answered() -> list[type[msgspec.Struct]]:
    return _with_parts([*_all_answers(), *_IN_STREAMS])


def _all_answers() -> list[Any]:
    return [answer for endpoint in ALL for answer in endpoint.answers.values()]


def _with_parts(kinds: Iterable[Any]) -> list[type[msgspec.Struct]]:
    """The structs in these types, each after its base and the structs of its fields."""
    found: dict[type[msgspec.Struct], None] = {}

    def visit(kind: Any) -> None:
        if get_origin(kind) is not None:
            for member in get_args(kind):
                visit(member)
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found and not _is_root(kind):
            visit(kind.__base__)
            for hint in _hints(kind).values():
                visit(hint)
            found[kind] = None

    for kind in kinds:
        visit(kind)
    return list(found)


def _is_root(kind: type) -> bool:
    return kind in (msgspec.Struct, Body)


def _hints(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Of the struct's own fields, without those of its base."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in vars(kind).get("__annotations__", {}) if name in kind.__struct_fields__}


def _struct(kind: type[msgspec.Struct]) -> str:
    base = kind.__base__
    assert base is not None
    lines = [f"class {kind.__name__}({', '.join([base.__name__, *_options(kind)])}):"]
    if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
        lines.append(f'    """{kind.__doc__}"""\n')
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    for name, hint in _hints(kind).items():
        lines += _comment(hint)
        lines.append(f"    {name}: {_field(hint, fields[name])}")
    return "\n".join([*lines, ""] if len(lines) > 1 else [*lines, "    pass", ""])


def _options(kind: type[msgspec.Struct]) -> Iterator[str]:
    config, inherited = kind.__struct_config__, kind.__mro__[1].__struct_config__  # type: ignore[attr-defined]  # a struct
    parameters = inspect.signature(kind).parameters
    if all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in _hints(kind)):
        yield "kw_only=True"
    for option in ("frozen", "forbid_unknown_fields"):
        if getattr(config, option) and not getattr(inherited, option):
            yield f"{option}=True"


def _comment(hint: Any) -> list[str]:
    metas = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    text = next((meta.description for meta in metas if getattr(meta, "description", None)), "")
    return [f"    # {line}" for line in textwrap.wrap(text, _COMMENT_CHARS)]


def _field(hint: Any, field: FieldInfo) -> str:
    is_document = msgspec.Raw in _leaves(hint)
    kind = _kind(hint)
    if field.required:
        return kind if field.name == field.encode_name else f"{kind} = field(name={field.encode_name!r})"
    default = "UNSET" if is_document else _default(field)
    if field.name != field.encode_name:
        return f"{kind} = field(default={default}, name={field.encode_name!r})"
    return f"{kind} = {default}"


def _default(field: FieldInfo) -> str:
    if field.default_factory is msgspec.NODEFAULT:
        return "UNSET" if field.default is msgspec.UNSET else repr(field.default)
    if field.default_factory in (list, dict):
        return repr(field.default_factory())
    return f"field(default_factory={field.default_factory.__name__})"


def _leaves(hint: Any) -> set[Any]:
    if get_origin(hint) in (None, Literal):
        return {hint}
    return set().union(*(_leaves(member) for member in get_args(hint)))


def _kind(hint: Any) -> str:
    """The type as a copy has it."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _kind(get_args(hint)[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, get_args(hint)))}]"
    if origin in (Union, types.UnionType):
        members = dict.fromkeys(part for member in get_args(hint) for part in _kind(member).split(" | "))
        return "Any" if "Any" in members else " | ".join(sorted(members, key=lambda member: member == "None"))
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(_kind, get_args(hint)))}]"
    if hint is type(None) or hint is None:
        return "None"
    if hint in (Any, msgspec.Raw):
        return "Any"
    return "..." if hint is ... else str(hint.__name__)


# Routes and methods


def _names(answer: Any) -> set[str]:
    """The structs that an answer names itself."""
    return {leaf.__name__ for leaf in _leaves(answer) if isinstance(leaf, type) and issubclass(leaf, msgspec.Struct)}


def _answers(endpoint: Endpoint) -> str:
    return "{" + ", ".join(f"{status}: {_kind(answer)}" for status, answer in endpoint.answers.items()) + "}"


def _repeats(endpoint: Endpoint) -> str:
    return "freely" if endpoint.method == "GET" else endpoint.repeats


def _method(endpoint: Endpoint, is_async: bool) -> str:
    parameters = re.findall(r"{(\w+)}", endpoint.path)
    signature = ["self", *(f"{name}: str" for name in parameters)]
    arguments = [f'"{endpoint.name}"']
    if endpoint.body is not None:
        name = endpoint.body.__name__
        signature.append(f"body: {name} | None = None" if endpoint.body_optional else f"body: {name}")
        arguments.append("body")
    if endpoint.query is not None:
        is_optional = all(not field.required for field in msgspec.structs.fields(endpoint.query))
        name = endpoint.query.__name__
        signature.append(f"query: {name} | None = None" if is_optional else f"query: {name}")
        arguments += ["query"] if endpoint.body is not None else ["None", "query"]
    arguments += [f"{name}={name}" for name in parameters]
    answers = " | ".join(dict.fromkeys(map(_kind, endpoint.answers.values())))
    head = f"    {'async ' if is_async else ''}def {endpoint.name}({', '.join(signature)}) -> {answers}:"
    body = f"        return {'await ' if is_async else ''}self.call(call_of({', '.join(arguments)}))"
    return "\n".join([head, f'        """{endpoint.summary}."""', body, ""])


def formatted(text: str, path: Path) -> str:
    """As ruff would leave it. A tool of contributors: ruff is in their environment."""
    for command in (["check", "--fix-only", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    for name, source in FILES.items():
        (FOLDER / name).write_text(formatted(source(), FOLDER / name))
