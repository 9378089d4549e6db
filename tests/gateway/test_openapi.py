"""The description of the interface: OpenAPI 3.1 in structure, and all of the interface."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from corvo.model.errors import STATUS
from gateway.app import ENDPOINTS
from gateway.field_notes import FIELD_NOTES, NAME_NOTES, description_of
from gateway.http.messages import ErrorBody
from gateway.openapi import describe, refusals_of
from gateway.routes import API
from tests.gateway.asgi import House
from tests.gateway.test_bad_input import GOOD
from tests.support.builders import job_id

DOCUMENT: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(describe(ENDPOINTS)))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
OPERATIONS = [
    (path, method, operation) for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()
]
# JSON Schema 2020-12, as far as we use it.
KEYWORDS = {"type", "properties", "required", "items", "enum", "anyOf", "default", "description", "title", "$ref"}
KEYWORDS |= {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
KEYWORDS |= {"pattern", "additionalProperties", "exclusiveMinimum", "exclusiveMaximum", "propertyNames"}


def walk(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def schemas_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and those inside it, where the standard says that a schema stands."""
    yield schema
    for inner in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        yield from schemas_in(inner)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from schemas_in(schema[keyword])


def test_the_head_says_what_it_is() -> None:
    assert re.fullmatch(r"3\.1\.\d+", DOCUMENT["openapi"])
    assert {"title", "version"} <= set(DOCUMENT["info"])
    assert set(DOCUMENT) == {"openapi", "info", "paths", "components"}


def test_every_endpoint_is_there_and_nothing_else() -> None:
    described = {(method.upper(), path) for path, method, _ in OPERATIONS}

    assert described == {(one.method, API + path) for one in ENDPOINTS for path in (one.path, *one.aliases)}


def test_every_reference_leads_somewhere() -> None:
    references = [node["$ref"] for node in walk(DOCUMENT) if "$ref" in node]

    assert references
    for reference in references:
        prefix, _, name = reference.rpartition("/")
        assert prefix == "#/components/schemas"
        assert name in SCHEMAS


def test_every_schema_speaks_the_words_of_the_standard() -> None:
    for name, whole in SCHEMAS.items():
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name)
        for schema in schemas_in(whole):
            assert set(schema) <= KEYWORDS, (name, set(schema) - KEYWORDS)
            assert set(schema.get("required", ())) <= set(schema.get("properties", {}))
            if "pattern" in schema:
                re.compile(schema["pattern"].replace(r"\Z", "$"))


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_every_operation_is_whole(path: str, method: str, operation: dict[str, Any]) -> None:
    in_path = re.findall(r"\{(\w+)\}", path)

    assert method in ("get", "post", "put", "delete")
    assert operation["summary"]
    places = ("path", "query", "header")
    by_place = {place: [p for p in operation["parameters"] if p["in"] == place] for place in places}
    assert [(p["name"], p["required"]) for p in by_place["path"]] == [(name, True) for name in in_path]
    assert all(p["schema"] and not p["required"] for p in by_place["query"] + by_place["header"])
    assert [p["name"] for p in by_place["header"]] in ([], ["Idempotency-Key"])
    assert len(operation["parameters"]) == sum(map(len, by_place.values()))
    assert any(status.startswith("2") for status in operation["responses"])
    for status, response in operation["responses"].items():
        assert re.fullmatch(r"[2-5]\d\d", status)
        assert response["description"]
        for content in response.get("content", {}).values():
            assert set(content) == ({"schema", "example"} if status.startswith("2") else {"schema"})
    if method == "get":
        assert "requestBody" not in operation


def test_names_of_operations_are_unique() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]

    assert len(names) == len(set(names)) == sum(1 + len(endpoint.aliases) for endpoint in ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_refusal_has_its_status_and_stands_under_it(endpoint: Any) -> None:
    responses = DOCUMENT["paths"][API + endpoint.path][endpoint.method.lower()]["responses"]

    for code in refusals_of(endpoint):
        assert code in responses[str(STATUS[code])]["description"].split(", ")
    for status, answer in endpoint.answers.items():
        assert ("content" in responses[str(status)]) == (answer is not None), "a refusal took the place of an answer"


def test_answers_are_those_that_the_gateway_gives() -> None:
    """Every status of a good request, and every field of its answer, is described."""
    with House() as house:
        job = house.enqueue(payload=1, tags={"a": "b"})
        asked = [
            (name, "post", path, body) for name, (path, body) in GOOD.items() if name not in ("search", "bulk", "login")
        ]
        asked += [("get_job", "get", f"/jobs/{job}", None), ("cancel", "post", f"/jobs/{job}/cancel", None)]
        asked += [("get_job", "get", f"/jobs/{job_id(1)}", None)]
        for name, method, path, body in asked:
            reply = house.get(path) if method == "get" else house.post(path, body)
            described = next(operation for _, _, operation in OPERATIONS if operation["operationId"] == name)
            response = described["responses"][str(reply.status)]
            if reply.status >= 400:
                assert reply.code in response["description"]
            if reply.content:
                schema = SCHEMAS[response["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
                assert set(reply.json) <= set(schema["properties"])
                assert set(schema.get("required", ())) <= set(reply.json)


def test_every_field_and_parameter_is_described() -> None:
    for struct, schema in SCHEMAS.items():
        for name, field in schema.get("properties", {}).items():
            assert field["description"], f"{struct}.{name}: describe it in the code, or in gateway/field_notes.py"
    for path, method, operation in OPERATIONS:
        for parameter in operation["parameters"]:
            assert parameter["description"], f"{method} {path}: {parameter['name']}"


def test_every_note_is_used() -> None:
    left_names, left_fields = set(NAME_NOTES), set(FIELD_NOTES)
    kinds = [ErrorBody, *(kind for one in ENDPOINTS for kind in (one.body, one.query, *one.answers.values()) if kind)]
    for struct, schema in msgspec.json.schema_components(kinds, ref_template="{name}")[1].items():
        for name, field in schema.get("properties", {}).items():
            if not description_of(field):
                left_fields.discard((struct, name))
                if (struct, name) not in FIELD_NOTES:
                    left_names.discard(name)

    assert (left_names, left_fields) == (set(), set()), "these describe nothing, or what describes itself: drop them"
