"""JSON-RPC 2.0: every line has the right answer, or none; nothing ends the server."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.mcp import protocol
from corvo.cli.mcp.protocol import RpcError, agreed_version, reply_to


def serve(method: str, params: dict[str, Any]) -> Any:
    if method != "echo":
        raise RpcError(protocol.METHOD_NOT_FOUND, f"no {method}")
    return params


def told(line: str | bytes) -> Any:
    answer = reply_to(line.encode() if isinstance(line, str) else line, serve)
    return None if answer is None else json.loads(answer)


def request(**fields: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **fields})


@pytest.mark.parametrize("id", [1, 0, "a", ""])
def test_a_request_is_answered_under_its_id(id: int | str) -> None:
    answer = told(request(id=id, method="echo", params={"a": [1]}))

    assert answer == {"jsonrpc": "2.0", "id": id, "result": {"a": [1]}}


@pytest.mark.parametrize(
    "line",
    [
        request(method="notifications/initialized"),
        request(method="nonsense"),
        request(id=1, result={}),
        request(id=1, error={"code": 1, "message": "x"}),
        "",
        " \n",
    ],
)
def test_what_is_no_request_has_no_answer(line: str) -> None:
    assert told(line) is None


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        ("{", None, protocol.PARSE_ERROR),
        (b"\xff\xfe", None, protocol.PARSE_ERROR),
        ("[" * 100_000, None, protocol.PARSE_ERROR),
        ("[]", None, protocol.INVALID_REQUEST),
        ("1", None, protocol.INVALID_REQUEST),
        ('{"id": 1, "method": "echo"}', 1, protocol.INVALID_REQUEST),
        (request(id=1, method=2), 1, protocol.INVALID_REQUEST),
        (request(id=1, method="echo", params=[1]), 1, protocol.INVALID_REQUEST),
        (request(id=True, method="echo"), None, protocol.INVALID_REQUEST),
        (request(id=None, method="echo"), None, protocol.INVALID_REQUEST),
        (request(id="x", method="nonsense"), "x", protocol.METHOD_NOT_FOUND),
        (b" " * protocol.LINE_BYTES_MAX + b"{}", None, protocol.INVALID_REQUEST),
    ],
)
def test_what_is_wrong_has_its_code(line: str | bytes, id: Any, code: int) -> None:
    answer = told(line)

    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert len(answer["error"]["message"]) < 300


def test_a_batch_is_answered_as_a_batch_without_its_notifications() -> None:
    one, two = request(id=1, method="echo"), request(id=2, method="nonsense")

    answers = told(f"[{one}, {request(method='echo')}, {two}, 3]")

    assert [(one["id"], "error" in one) for one in answers] == [(1, False), (2, True), (None, True)]
    assert told(f"[{request(method='echo')}]") is None


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_line_ends_the_server(line: bytes) -> None:
    answer = reply_to(line, serve)

    assert answer is None or (b"\n" not in answer and json.loads(answer))


def test_the_version_of_the_client_is_taken_if_it_is_known() -> None:
    assert [agreed_version(one) for one in protocol.VERSIONS] == list(protocol.VERSIONS)
    assert agreed_version("1999-01-01") == agreed_version(None) == protocol.VERSIONS[0]
