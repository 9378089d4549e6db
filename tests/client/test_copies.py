"""The client's copies of bodies and answers say the same as the server's own types."""

from typing import Any

import msgspec
import pytest

from corvo.cli import derive_client
from corvo.client import answers, bodies, calls
from corvo.client.bodies import AckBody, EnqueueBatchBody, EnqueueBody
from corvo.client.calls import call_of
from corvo.client.routes import CODES, ROUTES
from corvo.endpoint import Endpoint
from corvo.model.errors import STATUS
from corvo.ops import ENDPOINTS as WRITES
from corvo.queries import ENDPOINTS as READS

ENDPOINTS = (*WRITES, *READS)
WITH_EXAMPLE = [endpoint for endpoint in ENDPOINTS if endpoint.body is not None]
ANSWERS = {kind.__name__: kind for kind in derive_client._answered()}


class Letter(msgspec.Struct):
    """A payload of a user's own type."""

    to: str
    copies: int = 1


@pytest.mark.parametrize("endpoint", WITH_EXAMPLE, ids=lambda endpoint: endpoint.name)
def test_what_the_client_sends_is_what_the_server_reads(endpoint: Endpoint) -> None:
    assert endpoint.body is not None
    kind = ROUTES[endpoint.name].body
    assert kind is not None
    copy = msgspec.convert(endpoint.example, kind)

    sent = msgspec.json.encode(calls.without_defaults(copy))

    read, meant = (
        msgspec.json.decode(text, type=endpoint.body) for text in (sent, msgspec.json.encode(endpoint.example))
    )
    assert plain(read) == plain(meant)


def plain(value: Any) -> Any:
    """Raw values compare by what they mean."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value) if bytes(value) else None
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_has_the_fields_of_the_server_s(name: str) -> None:
    of_server = {field.encode_name: field.required for field in msgspec.structs.fields(ANSWERS[name])}
    of_client = {field.encode_name: field.required for field in msgspec.structs.fields(getattr(answers, name))}

    assert of_client == of_server


def test_a_newer_server_may_add_fields_to_answers_and_a_typing_mistake_in_a_body_is_refused() -> None:
    assert msgspec.json.decode(b'{"status": "ok", "new": 1}', type=answers.Acked) == answers.Acked()
    with pytest.raises(msgspec.ValidationError, match="quue"):
        msgspec.convert({"filter": {"quue": "mail"}, "action": "delete"}, bodies.BulkBody)


@pytest.mark.parametrize(
    ("payload", "sent"),
    [
        ({"to": "a@b.c"}, b'{"to":"a@b.c"}'),
        (msgspec.Raw(b'{"n": 1}'), b'{"n": 1}'),
        (Letter("a@b.c"), b'{"to":"a@b.c","copies":1}'),
        ([Letter("a"), None], b'[{"to":"a","copies":1},null]'),
        (None, b"null"),
        ("", b'""'),
        (0, b"0"),
        ({}, b"{}"),
    ],
)
def test_a_document_is_sent_whole(payload: Any, sent: bytes) -> None:
    one = call_of("enqueue", EnqueueBody(queue="q", payload=payload))
    many = call_of("enqueue_batch", EnqueueBatchBody([EnqueueBody(queue="q", payload=payload)]))

    assert one.body == b'{"queue":"q","payload":' + sent + b"}"
    assert many.body == b'{"jobs":[{"queue":"q","payload":' + sent + b"}]}"


def test_a_document_that_is_not_given_is_not_sent() -> None:
    assert call_of("ack", AckBody(), job_id="j").body == b"{}"
    assert call_of("ack", AckBody(result=None), job_id="j").body == b'{"result":null}'


def test_the_codes_are_the_server_s() -> None:
    assert set(STATUS) == CODES
    assert set(ROUTES) == {endpoint.name for endpoint in ENDPOINTS}
