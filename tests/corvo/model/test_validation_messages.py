"""What is refused names what would have been taken."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from corvo.model.errors import Refusal
from corvo.model.json_input import decode_body, validation_refusal
from corvo.model.validation_messages import expected

Named = Annotated[str, Meta(pattern="^[a-z]+\\Z", description="small letters")]


class Inner(msgspec.Struct):
    choice: Literal["a", "b", "c"] = "a"
    name: Named | None = None


class Body(msgspec.Struct):
    items: list[Inner] | msgspec.UnsetType = msgspec.UNSET
    by_name: dict[str, Inner] = {}
    only: Literal["one"] = "one"
    count: Annotated[int, Meta(ge=1, description="how many")] = 1
    bare: Annotated[str, Meta(pattern="^x")] = "x"
    is_on: bool = False


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".only", "one"),
        (".items[0].choice", "a, b or c"),
        (".items[...].name", "small letters"),
        (".by_name[...].choice", "a, b or c"),
        (".is_on", "true or false"),
        (".count", None),
        (".bare", None),
        (".nobody.knows[3].it", None),
        ("", None),
    ],
)
def test_a_field_says_what_it_may_hold(path: str, words: str | None) -> None:
    assert expected(Body, path) == words


@pytest.mark.parametrize(
    ("body", "field", "error"),
    [
        (b'{"items": [{"choice": "d"}]}', "items[0].choice", "items[0].choice: expected a, b or c, not 'd'"),
        (b'{"items": [{}, {"name": "A"}]}', "items[1].name", "items[1].name: expected small letters"),
        (b'{"count": 0}', "count", "count: Expected `int` >= 1"),
        (b'{"bare": "y"}', "bare", "bare: Expected `str` matching regex '^x'"),
    ],
)
def test_a_refusal_says_what_to_send_instead(body: bytes, field: str, error: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(msgspec.json.Decoder(Body), body)

    assert (refused.value.field, refused.value.message) == (field, error)


@pytest.mark.parametrize(("query", "error"), [({"is_on": "yes"}, "is_on: expected true or false"), ({}, None)])
def test_so_does_that_of_a_query(query: dict[str, Any], error: str | None) -> None:
    try:
        msgspec.convert(query, Body, strict=False)
    except msgspec.ValidationError as wrong:
        assert validation_refusal(wrong, Body).message == error
    else:
        assert error is None
