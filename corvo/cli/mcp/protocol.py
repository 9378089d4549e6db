"""Messages of the Model Context Protocol: JSON-RPC 2.0, one message a line. Pure.

Every line is answered or ignored, never fatal: a client that sends rubbish gets an error and may go on.
"""

from collections.abc import Callable
from typing import Any

import msgspec

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")  # newest first
LINE_BYTES_MAX = 4 << 20
BATCH_MAX = 100  # messages in one line, which the version 2025-03-26 knows

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603


class RpcError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Message(msgspec.Struct):
    method: str
    jsonrpc: str = ""
    id: str | int | msgspec.UnsetType = msgspec.UNSET  # a notification has none, and gets no answer
    params: dict[str, Any] = {}


Serve = Callable[[str, dict[str, Any]], Any]  # method and parameters → result, or RpcError


def reply_to(line: bytes, serve: Serve) -> bytes | None:
    """The line of the answer, without its end. None: nothing is to be said."""
    if not line.strip():
        return None
    if len(line) > LINE_BYTES_MAX:
        return _encoded(_error(None, INVALID_REQUEST, f"a message has more than {LINE_BYTES_MAX} bytes"))
    try:
        content = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        return _encoded(_error(None, PARSE_ERROR, f"this is not JSON: {error}"))
    if not isinstance(content, list):
        answer = _answer(content, serve)
        return None if answer is None else _encoded(answer)
    if not 0 < len(content) <= BATCH_MAX:
        return _encoded(_error(None, INVALID_REQUEST, f"a batch has 1 to {BATCH_MAX} messages"))
    answers = [answer for one in content if (answer := _answer(one, serve)) is not None]
    return _encoded(answers) if answers else None


def _answer(content: Any, serve: Serve) -> dict[str, Any] | None:
    if isinstance(content, dict) and "method" not in content and ("result" in content or "error" in content):
        return None  # an answer: we ask nothing, so it is to nobody
    try:
        message = msgspec.convert(content, _Message)
    except msgspec.ValidationError as error:
        return _error(_id_of(content), INVALID_REQUEST, f"this is no request: {error}")
    if message.jsonrpc != "2.0":
        return _error(_id_of(content), INVALID_REQUEST, 'a request says "jsonrpc": "2.0"')
    if message.id is msgspec.UNSET:
        return None
    try:
        result = serve(message.method, message.params)
    except RpcError as error:
        return _error(message.id, error.code, error.message)
    return {"jsonrpc": "2.0", "id": message.id, "result": result}


def agreed_version(wanted: Any) -> str:
    """The client's own if we know it, else our newest: the client then decides whether it goes on."""
    return wanted if wanted in VERSIONS else VERSIONS[0]


def _id_of(content: Any) -> str | int | None:
    found = content.get("id") if isinstance(content, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _error(id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def _encoded(content: Any) -> bytes:
    return msgspec.json.encode(content)
