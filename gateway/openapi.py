"""The description of the HTTP API for tools, generated from the endpoints: OpenAPI 3.1."""

import re
from typing import Any

import msgspec

from corvo import __version__
from corvo.endpoint import Endpoint
from corvo.model.access import OPEN
from corvo.model.errors import STATUS
from corvo.model.ids import KEY_HEADER
from gateway import examples
from gateway.access.audited import is_change
from gateway.field_notes import PATH_NOTES, note_of
from gateway.http.messages import ErrorBody
from gateway.routes import API

# Codes that any route with the trait can answer with.
_ALWAYS = (
    "BAD_REQUEST",
    "OVERLOADED",
    "RATE_LIMITED",
    "SHARD_UNAVAILABLE",
    "NOT_LEADER",
    "OUTCOME_UNKNOWN",
    "DEADLINE_EXCEEDED",
    "INTERNAL_ERROR",
)
_CLOSED = ("UNAUTHORIZED", "FORBIDDEN")  # where a permission is needed
_WITH_BODY = ("PARSE_ERROR", "VALIDATION_ERROR", "BODY_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "REQUEST_TIMEOUT")
_PARAMETER = re.compile(r"\{(\w+)\}")

_REPEAT_KEY = {
    "name": KEY_HEADER,
    "in": "header",
    "required": False,
    "description": "the request with this key, path and body is carried out once, however often it is sent: a new UUID",
    "schema": {"type": "string"},
}


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
    _describe_fields(components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Corvo", "version": __version__, "summary": "A job processing server"},
        "paths": paths,
        "components": {"schemas": components},
    }


def refusals_of(endpoint: Endpoint) -> list[str]:
    closed = () if endpoint.access == OPEN else _CLOSED
    audited = ("AUDIT_UNAVAILABLE",) if is_change(endpoint) else ()
    codes = {*endpoint.refusals, *_ALWAYS, *closed, *audited, *(_WITH_BODY if endpoint.body else ())}
    return sorted(codes, key=lambda code: (STATUS[code], code))


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        # For clients: whether one that got no answer may send it again, and how long an answer may be held back.
        "x-corvo-repeats": "freely" if endpoint.method == "GET" else endpoint.repeats,
        **({"x-corvo-wait-s": endpoint.wait_s} if endpoint.wait_s else {}),
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": PATH_NOTES[name],
                "schema": {"type": "string"},
                "example": examples.PATHS[name],
            }
            for name in _PARAMETER.findall(endpoint.path)
        ]
        + _query_parameters(endpoint)
        + ([_REPEAT_KEY] if endpoint.repeats == "by key" else []),
        "responses": {
            str(status): {"description": "empty"}
            if answer is None
            else {
                "description": endpoint.summary,
                "content": {endpoint.media: {"schema": schemas[str(answer)], "example": examples.answer_of(answer)}},
            }
            for status, answer in endpoint.answers.items()
        },
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": _json(schemas[str(endpoint.body)], examples.body_of(endpoint)),
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
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": note_of(endpoint.query.__name__, name, field),
            "schema": field,
        }
        for name, field in described["properties"].items()
    ]


def _describe_fields(components: dict[str, Any]) -> None:
    for struct, schema in components.items():
        for name, field in schema.get("properties", {}).items():
            field.setdefault("description", note_of(struct, name, field))


def _json(schema: dict[str, Any], example: Any = None) -> dict[str, Any]:
    return {"application/json": {"schema": schema} | ({} if example is None else {"example": example})}
