import pytest

from corvo.model.errors import Refusal
from gateway.search.cursor import PageCursor, to_cursor, to_place

PLACE = PageCursor("desc", "2026-01-01T00:00:00.000000000Z", "s00_job_1")


def test_a_place_comes_back_from_its_cursor():
    assert to_place(to_cursor(PLACE), "desc") == PLACE
    assert to_place(None, "desc") is None


def test_a_place_of_the_other_order_is_refused():
    with pytest.raises(Refusal) as refusal:
        to_place(to_cursor(PLACE), "asc")

    assert (refusal.value.code, refusal.value.field) == ("VALIDATION_ERROR", "cursor")


@pytest.mark.parametrize("cursor", ["", "x", "!!!!", "AAAA", "é", to_cursor(PageCursor("desc", "yesterday", "a"))])
def test_what_is_no_cursor_is_refused(cursor):
    with pytest.raises(Refusal) as refusal:
        to_place(cursor, "desc")

    assert refusal.value.field == "cursor"
