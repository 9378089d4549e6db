"""The tools of `corvo mcp`, derived from the endpoints. Pure.

A tool is an endpoint to look at jobs and queues, or to operate them. Not offered: what workers do (fetch, ack, fail,
heartbeat), who may do what (keys, roles, namespaces, sign-on), the members of the cluster, and streams. Arguments are
the parameters of the path, of the query and the fields of the body, side by side; no two share a name, which
a test holds.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from corvo.client.calls import HttpCall, call_of
from corvo.endpoint import Endpoint

READ_ACTIONS = ("read", "list")
WORKER_ACTIONS = ("fetch", "ack", "fail", "heartbeat")
RESOURCES = ("jobs", "queues", "schedules", "batches", "bulk", "workers", "metrics")
LOOKED_AT = ("cluster:read", "events:read", "audit:read", "self:read")  # of other resources
SECOND_NAMES = ("seal_batch_by_its_old_path",)
JSON = "application/json"
DESTRUCTIVE = ("delete", "clear", "cancel", "reject", "bulk")
_PARAMETER = re.compile(r"\{(\w+)\}")


class ToolMisused(ValueError):
    """A sentence about the arguments of a tool."""


class Tool(NamedTuple):
    endpoint: Endpoint
    schema: dict[str, Any]  # of its arguments
    in_path: tuple[str, ...]
    in_query: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def is_read(self) -> bool:
        return self.endpoint.access.split(":")[1] in READ_ACTIONS

    @property
    def is_destructive(self) -> bool:
        return not self.is_read and any(word in DESTRUCTIVE for word in self.name.split("_"))

    def described(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.endpoint.summary,
            "description": f"{self.endpoint.summary}. ({self.endpoint.method} /api/v1{self.endpoint.path})",
            "inputSchema": self.schema,
            "annotations": {
                "title": self.endpoint.summary,
                "readOnlyHint": self.is_read,
                "destructiveHint": self.is_destructive,
                "openWorldHint": False,
            },
        }

    def call(self, arguments: dict[str, Any]) -> HttpCall[Any]:
        """The server checks the body; here is checked only what would be lost on the way."""
        left = dict(arguments)
        path = {}
        for name in self.in_path:
            value = left.pop(name, None)
            if not isinstance(value, str) or not value:
                raise ToolMisused(f"{self.name} needs {name}, a text")
            path[name] = value
        query = {name: _word(name, left.pop(name)) for name in self.in_query if name in left}
        if left and self.endpoint.body is None:
            raise ToolMisused(f"{self.name} has no argument {', '.join(sorted(left))}")
        call: HttpCall[Any] = call_of(self.name, **path)
        return call._replace(
            path=f"{call.path}?{urlencode(query)}" if query else call.path,
            body=msgspec.json.encode(left) if self.endpoint.body is not None else None,
        )


def tools_of(endpoints: Iterable[Endpoint], may_write: bool) -> dict[str, Tool]:
    tools = (_tool(endpoint) for endpoint in endpoints if _is_offered(endpoint))
    return {tool.name: tool for tool in tools if may_write or tool.is_read}


def _is_offered(endpoint: Endpoint) -> bool:
    resource, _, action = endpoint.access.partition(":")
    if endpoint.media != JSON or endpoint.name in SECOND_NAMES or action in WORKER_ACTIONS:
        return False
    return resource in RESOURCES or endpoint.access in LOOKED_AT


def _tool(endpoint: Endpoint) -> Tool:
    in_path = tuple(_PARAMETER.findall(endpoint.path))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "string", "minLength": 1} for name in in_path},
        "required": list(in_path),
        "additionalProperties": False,
    }
    in_query: tuple[str, ...] = ()
    for part in (endpoint.query, endpoint.body):
        if part is None:
            continue
        (described,), components = msgspec.json.schema_components([part], ref_template="#/$defs/{name}")
        described = components.pop(part.__name__, described)
        schema["properties"] |= described["properties"]
        schema["required"] += described.get("required", [])
        if components:
            schema["$defs"] = schema.get("$defs", {}) | components
        if part is endpoint.query:
            in_query = tuple(described["properties"])
    return Tool(endpoint, schema, in_path, in_query)


def _word(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ToolMisused(f"{name} is a text, a number, true or false")
