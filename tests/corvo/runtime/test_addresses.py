"""Addresses as people write them."""

import pytest

from corvo.runtime.addresses import check_reachable, is_loopback, join_address, split_address


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (":8080", ("0.0.0.0", 8080)),
        ("localhost:0", ("localhost", 0)),
        ("127.0.0.1:65535", ("127.0.0.1", 65535)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address", ["", "8080", "host", "host:", ":-1", ":65536", ":http", ":٨٠", ":8 0", ":" + "9" * 5000]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        split_address(address)


def test_an_address_is_put_together_as_it_was() -> None:
    assert [join_address(*split_address(one)) for one in ("[::1]:80", "db:9400")] == ["[::1]:80", "db:9400"]


@pytest.mark.parametrize("address", [":9400", "0.0.0.0:9400", "[::]:9400", "db:0"])
def test_others_cannot_be_told_every_address(address: str) -> None:
    with pytest.raises(ValueError, match="others can reach"):
        check_reachable(address)


def test_others_can_be_told_a_host_and_a_port() -> None:
    check_reachable("db-1.example.org:9400")


@pytest.mark.parametrize(
    ("address", "is_so"),
    [
        ("127.0.0.1:1", True),
        ("127.3.2.1:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        (":1", False),
        ("10.0.0.1:1", False),
        ("127.example.org:1", False),
        ("localhost.example.org:1", False),
    ],
)
def test_loopback_is_what_only_this_machine_can_mean(address: str, is_so: bool) -> None:
    assert is_loopback(address) == is_so
