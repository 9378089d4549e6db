"""The body of a search."""

from typing import get_args

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import STATE_NAMES
from corvo.queries.search import LIMIT_MAX, SearchBody, StateName

decoder = msgspec.json.Decoder(SearchBody)


def test_an_empty_search_is_for_the_newest_fifty() -> None:
    body = decode_body(decoder, b"{}")

    assert (body.state, body.order, body.limit, body.consistent) == ([], "desc", 50, False)


def test_every_state_can_be_searched_for() -> None:
    assert get_args(StateName) == STATE_NAMES


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": LIMIT_MAX + 1}, "limit"),
        ({"state": ["lost"]}, "state[0]"),
        ({"order": "random"}, "order"),
        ({"queue": "a|b"}, "queue"),
        ({"cursor": "x" * 513}, "cursor"),
        ({"statee": []}, "statee"),
    ],
)
def test_a_bad_search_is_refused_with_its_field(body: dict, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(decoder, msgspec.json.encode(body))

    assert refused.value.field == field
