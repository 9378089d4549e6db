"""A real server keeps what `/openapi.json` says: requests made from it, by a key of each role.

schemathesis makes requests that the description allows. Each is sent with every key. No answer is a fault of the
server, none has a status that the description does not list, and each has the form that it lists. `make openapi` sends
many more.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from chaos.node import Node
from corvo.model.access import ROLES
from gateway.app import ENDPOINTS
from gateway.openapi import describe

pytestmark = pytest.mark.system

EXAMPLES = int(os.environ.get("OPENAPI_EXAMPLES", "2"))
PASSWORD = "the-password-of-this-server"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# Answers without an end, and changes of the cluster itself.
LEFT_OUT = {"events", "rebuild_sqlite", "cluster_join", "cluster_remove", "cluster_transfer", "set_sso_settings"}
SCHEMA = schemathesis.openapi.from_dict(describe(ENDPOINTS))
OPERATIONS = [
    found.ok() for found in SCHEMA.get_all_operations() if found.ok().definition.raw["operationId"] not in LEFT_OUT
]
WAITS = ("timeout", "wait_ms")


class Server:
    def __init__(self, node: Node) -> None:
        self.url = node.url
        self.client = httpx.Client(base_url=node.url, timeout=30.0, headers={"x-api-key": PASSWORD})
        self.keys = {role: self._key(role) for role in ROLES}

    def _key(self, role: str) -> str:
        told = self.client.post("/api/v1/auth/keys", json={"name": role, "role": role})
        assert told.status_code == 200, told.text
        return str(told.json()["api_key"])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        password_file = Path(folder) / "password"
        password_file.touch(0o600)
        password_file.write_text(PASSWORD)
        node = Node.start(
            Path(folder) / "data", "--shards", "1", "--auth", "on", "--admin-password-file", str(password_file)
        )
        server = Server(node)
        yield server
        server.client.close()
        assert node.stop() == 0


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.definition.raw["operationId"])
def test_answers_are_those_of_the_description(operation: Any, server: Server) -> None:
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        if isinstance(case.body, dict):
            for name in WAITS:
                if name in case.body:
                    case.body[name] = 0
        for key in server.keys.values():
            response = case.call(base_url=server.url, headers={"x-api-key": key}, timeout=30)
            case.validate_response(response, checks=CHECKS)

    send()
