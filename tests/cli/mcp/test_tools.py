"""Tools derived from the endpoints: which are offered, what they take, what they ask."""

import json
from typing import Any

import msgspec
import pytest

from corvo import ops, queries
from corvo.cli.mcp.session import TEXT_CHARS_MAX, McpSession
from corvo.cli.mcp.tools import Tool, ToolMisused, tools_of
from corvo.client.calls import HttpCall, ServerRefused
from corvo.client.http import Unreachable

ENDPOINTS = (*ops.ENDPOINTS, *queries.ENDPOINTS)
ALL = tools_of(ENDPOINTS, may_write=True)
READS = tools_of(ENDPOINTS, may_write=False)


def test_without_permission_every_tool_only_reads() -> None:
    assert {"queues", "search", "get_job", "why", "error_groups", "cluster_status", "audit_logs"} <= set(READS)
    for tool in READS.values():
        action = tool.endpoint.access.split(":")[1]
        assert action in ("read", "list") and (tool.endpoint.method == "GET" or tool.name in ("search", "bulk_get"))


def test_with_permission_queues_and_jobs_can_be_operated() -> None:
    writes = set(ALL) - set(READS)

    assert {"enqueue", "retry", "cancel", "bulk", "pause_queue", "delete_queue", "create_schedule"} <= writes
    assert {name for name in writes if ALL[name].is_destructive} == {
        "cancel", "reject", "delete_job", "bulk", "cancel_bulk", "delete_schedule", "clear_queue", "delete_queue",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["fetch", "ack", "fail", "heartbeat", "create_key", "api_keys", "put_role", "login", "cluster_remove", "events"],
)
def test_work_access_membership_and_streams_are_not_offered(name: str) -> None:
    assert name in {endpoint.name for endpoint in ENDPOINTS} and name not in ALL


@pytest.mark.parametrize("tool", ALL.values(), ids=lambda tool: tool.name)
def test_every_tool_describes_its_arguments_without_two_of_one_name(tool: Tool) -> None:
    parts = [part for part in (tool.endpoint.query, tool.endpoint.body) if part is not None]
    fields = [field.encode_name for part in parts for field in msgspec.structs.fields(part)]
    schema = tool.schema

    assert sorted([*tool.in_path, *fields]) == sorted(schema["properties"])
    assert set(schema["required"]) <= set(schema["properties"])
    references = [word for word in json.dumps(schema).split('"') if word.startswith("#/$defs/")]
    assert {word.removeprefix("#/$defs/") for word in references} <= set(schema.get("$defs", {}))


@pytest.mark.parametrize(
    "tool", [tool for tool in ALL.values() if tool.endpoint.example is not None], ids=lambda tool: tool.name
)
def test_the_example_of_an_endpoint_is_sent_as_it_stands(tool: Tool) -> None:
    path = dict.fromkeys(tool.in_path, "a/b")
    assert not set(path) & set(tool.endpoint.example or {})

    call = tool.call({**path, **(tool.endpoint.example or {})})

    assert msgspec.json.decode(call.body or b"") == tool.endpoint.example
    assert call.method == tool.endpoint.method and ("a%2Fb" in call.path) is bool(path)


def test_parameters_of_the_query_stand_behind_the_path() -> None:
    call = READS["dead"].call({"queue": "a b", "limit": 5, "consistent": True})

    assert call.path == "/api/v1/jobs/dead?queue=a+b&limit=5&consistent=true" and call.body is None


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("get_job", {}, "needs job_id"),
        ("get_job", {"job_id": 1}, "needs job_id"),
        ("get_job", {"job_id": ""}, "needs job_id"),
        ("queues", {"queue": "mail"}, "no argument queue"),
        ("dead", {"limit": [1]}, "limit is a text"),
    ],
)
def test_wrong_arguments_are_said(name: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolMisused, match=words):
        READS[name].call(arguments)


def session(answer: Any) -> McpSession:
    def ask(call: HttpCall[Any]) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return McpSession(ask, READS, may_write=False)


def called(answer: Any) -> dict[str, Any]:
    found = session(answer).serve("tools/call", {"name": "queues", "arguments": {}})
    decoded: dict[str, Any] = json.loads(msgspec.json.encode(found))
    return decoded


def test_an_object_is_structured_too_and_a_list_is_text() -> None:
    assert called({"a": 1}) == {
        "content": [{"type": "text", "text": '{"a":1}'}],
        "isError": False,
        "structuredContent": {"a": 1},
    }
    assert called([1]) == {"content": [{"type": "text", "text": "[1]"}], "isError": False}


@pytest.mark.parametrize(
    "error", [ServerRefused("NO", "not now", 400), Unreachable("nobody is there")], ids=["refused", "away"]
)
def test_a_refusal_is_an_answer_of_the_tool(error: Exception) -> None:
    answer = called(error)

    assert answer["isError"] is True and str(error) in answer["content"][0]["text"]


def test_a_long_answer_is_cut_and_says_so() -> None:
    answer = called({"a": "x" * (2 * TEXT_CHARS_MAX)})

    text = answer["content"][0]["text"]
    assert len(text) < TEXT_CHARS_MAX + 200 and "cut here" in text and "structuredContent" not in answer
