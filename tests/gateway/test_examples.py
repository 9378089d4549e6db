"""The examples of /docs and OpenAPI are requests that are taken, and answers that are given."""

import json
import shlex
from typing import Any

import msgspec
import pytest

from corvo.endpoint import Endpoint
from gateway import examples
from gateway.app import ENDPOINTS
from gateway.http.messages import parse_query
from gateway.routes import API, Routes

WITH_BODY = [endpoint for endpoint in ENDPOINTS if endpoint.body is not None]
ANSWERS = [(one, status) for one in ENDPOINTS for status, kind in one.answers.items() if kind is not None]


def test_what_is_written_by_hand_is_for_an_endpoint_that_takes_it() -> None:
    assert set(examples.BODIES) <= {endpoint.name for endpoint in WITH_BODY}
    assert set(examples.QUERIES) <= {endpoint.name for endpoint in ENDPOINTS if endpoint.query is not None}


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=lambda endpoint: endpoint.name)
def test_a_body_is_read_as_what_the_endpoint_takes(endpoint: Endpoint) -> None:
    msgspec.json.decode(json.dumps(examples.body_of(endpoint)), type=endpoint.body)


@pytest.mark.parametrize(("endpoint", "status"), ANSWERS, ids=[f"{one.name}-{status}" for one, status in ANSWERS])
def test_an_answer_is_read_as_what_the_endpoint_gives(endpoint: Endpoint, status: int) -> None:
    kind: Any = endpoint.answers[status]
    shown = examples.answer_of(kind)

    msgspec.json.decode(json.dumps(shown), type=kind)
    assert shown, "an example shows something"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_command_line_asks_that_endpoint(endpoint: Endpoint) -> None:
    words = shlex.split(examples.curl(endpoint, API).replace("\\\n", ""))
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    address = next(word for word in words if word.startswith("localhost"))
    path, _, query = address.removeprefix("localhost:8080").partition("?")

    assert Routes(ENDPOINTS).find(method, path).endpoint.name == endpoint.name
    if endpoint.query is not None:
        parse_query(endpoint.query, query.encode())
    if endpoint.body is not None:
        assert json.loads(words[words.index("-d") + 1]) == examples.body_of(endpoint)
