"""The description of the HTTP interface, drawn from the endpoints: OpenAPI 3.1, and a page for people."""

import re
from html import escape
from typing import Any

import msgspec

from corvo import __version__
from corvo.endpoint import Endpoint
from corvo.model.errors import STATUS
from gateway.http.messages import ErrorBody
from gateway.routes import API

# Codes that any route with the trait can answer with.
_ALWAYS = (
    "BAD_REQUEST",
    "OVERLOADED",
    "SHARD_UNAVAILABLE",
    "NOT_LEADER",
    "OUTCOME_UNKNOWN",
    "DEADLINE_EXCEEDED",
    "INTERNAL_ERROR",
)
_WITH_BODY = ("PARSE_ERROR", "VALIDATION_ERROR", "BODY_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "REQUEST_TIMEOUT")
_PARAMETER = re.compile(r"\{(\w+)\}")


def describe(endpoints: tuple[Endpoint, ...]) -> dict[str, Any]:
    types: list[Any] = [ErrorBody]
    for endpoint in endpoints:
        types += [endpoint.body] if endpoint.body else []
        types += [answer for answer in endpoint.answers.values() if answer is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = dict(zip(map(str, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, by_type)
        paths.setdefault(API + endpoint.path, {})[endpoint.method.lower()] = operation
        for number, alias in enumerate(endpoint.aliases, 2):
            another = operation | {"operationId": f"{endpoint.name}_{number}"}
            paths.setdefault(API + alias, {})[endpoint.method.lower()] = another
    return {
        "openapi": "3.1.0",
        "info": {"title": "Corvo", "version": __version__, "summary": "A job processing server"},
        "paths": paths,
        "components": {"schemas": components},
    }


def refusals_of(endpoint: Endpoint) -> list[str]:
    codes = {*endpoint.refusals, *_ALWAYS, *(_WITH_BODY if endpoint.body else ())}
    return sorted(codes, key=lambda code: (STATUS[code], code))


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _PARAMETER.findall(endpoint.path)
        ]
        + _query_parameters(endpoint),
        "responses": {
            str(status): {"description": "empty"}
            if answer is None
            else {"description": endpoint.summary, "content": {endpoint.media: {"schema": schemas[str(answer)]}}}
            for status, answer in endpoint.answers.items()
        },
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": _json(schemas[str(endpoint.body)]),
        }
    by_status: dict[int, list[str]] = {}
    for code in refusals_of(endpoint):
        by_status.setdefault(STATUS[code], []).append(code)
    for status, codes in by_status.items():
        operation["responses"][str(status)] = {
            "description": ", ".join(codes),
            "content": _json(schemas[str(ErrorBody)]),
        }
    return operation


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    (schema,), components = msgspec.json.schema_components([endpoint.query], ref_template="{name}")
    described = components.get(endpoint.query.__name__, schema)
    return [
        {"name": name, "in": "query", "required": False, "schema": field}
        for name, field in described["properties"].items()
    ]


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Corvo {version}: HTTP interface</title>
<style>
body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}}
code,pre{{font:14px/1.45 ui-monospace,monospace}} h1{{font-size:1.6rem}}
section{{border-top:1px solid #d5dae0;padding:1rem 0}}
h2{{font-size:1rem;margin:0}} .m{{display:inline-block;min-width:3.5rem;font-weight:700;color:#0b5cad}}
table{{border-collapse:collapse;width:100%}} td,th{{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}}
details{{margin:.4rem 0}} summary{{cursor:pointer}} .muted{{color:#5b6570}}
@media(prefers-color-scheme:dark){{
body{{background:#14171a;color:#e6e9ec}} .m{{color:#7ab8ff}} section{{border-color:#2c3238}}}}
</style>
<h1>Corvo {version}</h1>
<p>Bodies and answers are JSON. Errors are <code>{{"error": "sentence", "code": "UPPER_SNAKE"}}</code>.
The machine-readable description is at <a href="/openapi.json">/openapi.json</a>.</p>
{sections}
</html>
"""


def page(endpoints: tuple[Endpoint, ...]) -> str:
    return _PAGE.format(version=escape(__version__), sections="\n".join(map(_section, endpoints)))


def _section(endpoint: Endpoint) -> str:
    anchor = escape(endpoint.name)
    parts = [
        f'<section id="{anchor}"><h2><span class="m">{endpoint.method}</span> '
        f"<code>{escape(API + endpoint.path)}</code></h2><p>{escape(endpoint.summary)}</p>"
    ]
    if endpoint.body is not None:
        parts.append(_fields("Body", endpoint.body))
    for status, answer in endpoint.answers.items():
        if answer is None:
            parts.append(f'<p class="muted">{status}: no content</p>')
        else:
            parts.append(_fields(f"Answer {status}", answer))
    codes = ", ".join(f"<code>{code}</code>&nbsp;{STATUS[code]}" for code in refusals_of(endpoint))
    return "".join(parts) + f"<p class='muted'>Refusals: {codes}</p></section>"


def _fields(title: str, kind: Any) -> str:
    struct = kind if isinstance(kind, type) else kind.__args__[0]
    prefix = "list of " if struct is not kind else ""
    rows = []
    schema, components = msgspec.json.schema_components([struct], ref_template="{name}")
    described = components.get(struct.__name__, schema[0])
    for name, field in described.get("properties", {}).items():
        need = "required" if name in described.get("required", ()) else f"default {field.get('default', 'none')!r}"
        rows.append(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(_kind(field))}</td>"
            f"<td class='muted'>{escape(need if title == 'Body' else '')}</td>"
            f"<td>{escape(field.get('description', ''))}</td></tr>"
        )
    table = f"<table>{''.join(rows)}</table>"
    return f"<details><summary>{escape(title)}: {prefix}{struct.__name__}</summary>{table}</details>"


def _kind(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " | ".join(map(repr, field["enum"]))
    if "anyOf" in field:
        return " | ".join(_kind(option) for option in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"])
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    return str(field.get("type", "any JSON"))
