"""`null` in an optional field is the same as leaving the field out, in every body there is."""

from typing import Annotated, get_type_hints

import msgspec
import pytest
from msgspec import Meta, inspect

from corvo import ops, queries
from corvo.endpoint import Body
from corvo.model.errors import Refusal
from corvo.model.json_input import decode_body
from corvo.model.null_fields import without_nulls
from corvo.ops.jobs.enqueue import EnqueueBatchBody, EnqueueBody
from gateway.api.frame_input import FrameBody

BODIES = {e.body for e in (*ops.ENDPOINTS, *queries.ENDPOINTS) if e.body is not None} | {FrameBody}


class Inner(Body):
    name: str
    count: int = 3
    note: str | None = "note"
    any: msgspec.Raw = msgspec.Raw(b"1")


class Outer(Body):
    inner: Inner | None = None
    many: Annotated[list[Inner], Meta(max_length=9)] = []
    by_name: dict[str, Inner] = {}
    plain: list[str] = []


DECODER = msgspec.json.Decoder(Outer)


@pytest.mark.parametrize("body", sorted(BODIES, key=lambda body: body.__name__), ids=lambda body: body.__name__)
def test_every_optional_field_of_every_body_takes_null(body: type[msgspec.Struct]) -> None:
    fields = [field for field in inspect.type_info(body).fields if not field.required]  # type: ignore[attr-defined]
    types = get_type_hints(body, include_extras=True)
    optional = msgspec.defstruct("Optional", [(field.name, types[field.name], None) for field in fields])
    sent = msgspec.json.encode({field.encode_name: None for field in fields})

    decode_body(msgspec.json.Decoder(optional), sent)


def test_nulls_go_at_every_depth_and_all_other_bytes_stay() -> None:
    sent = b"""{"inner": {"name": "a", "count": null, "any":  {"x": null, "n": 1.10}},
        "many": [{"name": "b", "count": null}, {"name": "c", "note": null}], "plain": null,
        "by_name": {"d": {"name": "null", "count": null}}}"""

    read = decode_body(DECODER, sent)

    assert read == Outer(
        inner=Inner("a", any=msgspec.Raw(b'{"x": null, "n": 1.10}')),
        many=[Inner("b"), Inner("c", note=None)],
        by_name={"d": Inner("null")},
    )


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (b'{"many": [{"name": null}]}', "many[0].name"),
        (b'{"many": [{"name": "a", "count": null}, null]}', "many[1]"),
        (b'{"many": [{"name": "a", "count": null}, {"count": "x", "name": "b"}]}', "many[1].count"),
        (b'{"plain": [null]}', "plain[0]"),
        (b'{"unknown": null}', "unknown"),
        (b"null", "body"),
    ],
)
def test_a_null_that_is_needed_or_unknown_is_refused_where_it_stands(sent: bytes, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(DECODER, sent)

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", field)


def test_a_body_without_such_nulls_is_not_copied() -> None:
    sent = b'{"plain": [1]}'

    assert without_nulls(sent, Outer) is sent


def test_an_enqueue_full_of_nulls_is_an_enqueue_with_a_queue() -> None:
    names = [name for name in EnqueueBody.__struct_fields__ if name not in ("queue", "payload")]
    sent = {"queue": "mail", "depends_on": None} | dict.fromkeys(names)

    one = decode_body(msgspec.json.Decoder(EnqueueBody), msgspec.json.encode(sent))
    many = decode_body(
        msgspec.json.Decoder(EnqueueBatchBody), msgspec.json.encode({"jobs": [sent], "batch": None, "batch_id": None})
    )

    assert one.depends_on == []
    assert one.priority == "normal"
    assert len(many.jobs) == 1
