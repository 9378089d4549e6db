"""What is typed after `/`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.screen.top.filters import FIELDS, BadFilter, parse_filter, search_of, word
from corvo.client.bodies import SearchBody
from corvo.queries.search import SearchBody as ServersSearch
from tests.cli.answers import NOON_NS


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("queue=mail state=dead,retrying", {"queue": "mail", "state": ["dead", "retrying"]}),
        ("tags.tenant=acme tags.tier:=1", {"tags": {"tenant": "acme", "tier": 1}}),
        ("attempt_min=2 has_errors=true", {"attempt_min": "2", "has_errors": "true"}),
        ("timeout", {"payload_contains": "timeout"}),
        ("mail to ada", {"payload_contains": "mail to ada"}),
        ("payload_jq='.amount > 100'", {"payload_jq": ".amount > 100"}),
        ("payload_jq='.a == 1'", {"payload_jq": ".a == 1"}),
        ("created_after=1h", {"created_after": "2026-01-31T11:00:00.000000000Z"}),
        ("created_after=2026-01-31", {"created_after": "2026-01-31"}),
        ('{"queue": "mail", "state": ["dead"]}', {"queue": "mail", "state": ["dead"]}),
    ],
)
def test_words_are_the_filters_of_the_api(text: str, fields: dict[str, Any]) -> None:
    assert parse_filter(text, NOON_NS) == fields


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("color=red", "there is no filter 'color'"),
        ("limit=3", "there is no filter 'limit'"),
        ("queue=", "queue= has no value"),
        ("state=broken", "state"),
        ("attempt_min=many", "attempt_min"),
        ("payload_jq='.a", "cannot be read"),
        ("tags.tier:=one", "after := stands a number"),
        ("{", "is not JSON"),
        ('{"color": 1}', "there is no filter 'color'"),
    ],
)
def test_what_cannot_be_a_filter_is_told(text: str, sentence: str) -> None:
    with pytest.raises(BadFilter, match=sentence.replace("(", r"\(")):
        parse_filter(text, NOON_NS)


@given(st.text(max_size=60) | st.builds("{}={}".format, st.sampled_from(FIELDS), st.text(max_size=30)))
def test_anything_typed_is_a_filter_or_a_sentence(text: str) -> None:
    try:
        fields = parse_filter(text, NOON_NS)
    except BadFilter as error:
        assert str(error)
    else:
        assert set(fields) <= set(FIELDS)


def test_filters_are_those_of_the_server() -> None:
    paging = {"sort", "order", "cursor", "limit", "consistent"}
    assert set(FIELDS) == set(ServersSearch.__struct_fields__) - paging


def test_a_pane_asks_for_its_own_states_and_order_unless_told_otherwise() -> None:
    assert search_of("failures", "", None, False, NOON_NS) == SearchBody(
        state=["dead", "retrying"], sort="started_at", order="desc", limit=200
    )
    found = search_of("failures", "state=dead queue=mail", "attempt", True, NOON_NS)
    assert (found.state, found.queue, found.sort, found.order) == (["dead"], "mail", "attempt", "desc")


@given(st.text(min_size=1, max_size=30))
def test_a_word_is_read_as_it_was_written(value: str) -> None:
    assert parse_filter(word("queue", value), NOON_NS) == {"queue": value}
