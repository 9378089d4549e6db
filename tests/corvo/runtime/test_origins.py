"""Origins of web pages."""

import pytest

from corvo.runtime.origins import parse_origins
from corvo.runtime.settings import BadSettings, load


def test_origins_are_a_list() -> None:
    assert parse_origins("") == ()
    assert parse_origins("*") == ("*",)
    assert parse_origins("https://a.example, http://localhost:3000") == ("https://a.example", "http://localhost:3000")


@pytest.mark.parametrize("text", ["a.example", "https://a.example/", "ftp://a", "https://", "https://a.example/app"])
def test_what_is_no_origin_is_a_fault_of_the_settings(text: str) -> None:
    with pytest.raises(BadSettings, match="--cors-origins"):
        load({"cors_origins": text}, {})
