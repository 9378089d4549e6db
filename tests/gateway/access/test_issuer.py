"""The issuer's description and keys: fetched rarely, checked, and kept while it is away (S46, S47)."""

import asyncio
from collections.abc import Iterator

import pytest

from gateway.access import issuer as module
from gateway.access.issuer import AGAIN_S, KEYS_OLDEST_S, KEYS_S, RETRY_S, Issuer, IssuerUnavailable, check_address
from tests.gateway.access.issuer_server import TestIssuer, a_test_issuer


@pytest.fixture
def server() -> Iterator[TestIssuer]:
    with a_test_issuer() as made:
        yield made


class Fake:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def kids(issuer: Issuer, kid: str) -> set[str | None]:
    return {key.kid for key in (await issuer.keys(kid)).keys}


def test_keys_are_fetched_once_and_again_when_they_are_old(server: TestIssuer) -> None:
    async def play() -> None:
        clock = Fake()
        issuer = Issuer(server.url, clock_s=clock)
        try:
            assert await asyncio.gather(*(kids(issuer, "first") for _ in range(20))) == [{"first"}] * 20
            assert server.requests["/keys"] == 1
            clock.now += KEYS_S
            await issuer.keys("first")
            assert server.requests["/keys"] == 2
            assert server.requests["/.well-known/openid-configuration"] == 1
        finally:
            await issuer.close()

    asyncio.run(play())


def test_s46_unknown_keys_cost_one_fetch_a_minute(server: TestIssuer) -> None:
    async def play() -> None:
        clock = Fake()
        issuer = Issuer(server.url, clock_s=clock)
        try:
            await issuer.keys("first")
            for number in range(10_000):
                await issuer.keys(f"random-{number}")
            assert server.requests["/keys"] == 2
            server.rotate("second")
            clock.now += AGAIN_S
            assert await kids(issuer, "second") == {"first", "second"}
            assert server.requests["/keys"] == 3
        finally:
            await issuer.close()

    asyncio.run(play())


def test_a_rotated_key_counts_at_once_unless_another_did_within_the_minute(server: TestIssuer) -> None:
    async def play() -> None:
        issuer = Issuer(server.url, clock_s=Fake())
        try:
            await issuer.keys("first")
            server.rotate("second")
            assert await kids(issuer, "second") == {"first", "second"}
            server.rotate("third")
            assert await kids(issuer, "third") == {"first", "second"}
        finally:
            await issuer.close()

    asyncio.run(play())


def test_an_issuer_that_comes_back_is_asked_within_seconds(server: TestIssuer) -> None:
    async def play() -> None:
        clock = Fake()
        issuer = Issuer(server.url, clock_s=clock)
        try:
            server.is_down = True
            for _ in range(100):
                with pytest.raises(IssuerUnavailable):
                    await issuer.keys("first")
            assert server.requests == {"/.well-known/openid-configuration": 1}
            server.is_down = False
            clock.now += RETRY_S
            assert await kids(issuer, "first") == {"first"}
        finally:
            await issuer.close()

    asyncio.run(play())


def test_s47_known_keys_serve_while_the_issuer_is_away_until_they_are_too_old(server: TestIssuer) -> None:
    async def play() -> None:
        clock = Fake()
        issuer = Issuer(server.url, clock_s=clock)
        try:
            await issuer.keys("first")
            server.is_down = True
            clock.now += KEYS_S
            assert await kids(issuer, "first") == {"first"}
            clock.now += KEYS_OLDEST_S
            with pytest.raises(IssuerUnavailable, match="too old"):
                await issuer.keys("first")
            server.is_down = False
            clock.now += AGAIN_S
            assert await kids(issuer, "first") == {"first"}
        finally:
            await issuer.close()

    asyncio.run(play())


def test_s47_an_issuer_that_is_down_from_the_start_lets_nobody_in(server: TestIssuer) -> None:
    async def play() -> None:
        server.is_down = True
        issuer = Issuer(server.url)
        try:
            with pytest.raises(IssuerUnavailable, match="unknown"):
                await issuer.keys("first")
            with pytest.raises(IssuerUnavailable, match="503"):
                await issuer.description()
        finally:
            await issuer.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b'{"issuer":"https://other.example","authorization_endpoint":"https://a","token_endpoint":"https://a","jwks_uri":"https://a"}',
        b"x" * (module.ANSWER_BYTES_MAX + 1),
    ],
    ids=["empty", "list", "nothing", "another issuer", "too long"],
)
def test_a_description_that_cannot_be_used_is_refused(server: TestIssuer, answer: bytes) -> None:
    async def play() -> None:
        server.answer = answer
        issuer = Issuer(server.url)
        try:
            with pytest.raises(IssuerUnavailable):
                await issuer.description()
        finally:
            await issuer.close()

    asyncio.run(play())


def test_endpoints_of_the_description_are_checked_too(server: TestIssuer) -> None:
    async def play() -> None:
        server.answer = (
            b'{"issuer":"%b","authorization_endpoint":"https://a","token_endpoint":"https://a","jwks_uri":"file:///etc/passwd"}'
            % server.url.encode()
        )
        issuer = Issuer(server.url)
        try:
            with pytest.raises(IssuerUnavailable, match="jwks_uri"):
                await issuer.description()
        finally:
            await issuer.close()

    asyncio.run(play())


@pytest.mark.parametrize("url", ["https://issuer.example", "https://issuer.example/realms/a", "http://127.0.0.1:8080"])
def test_https_and_this_machine_are_good_addresses(url: str) -> None:
    check_address(url, "the issuer")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "issuer.example",
        "http://issuer.example",
        "http://10.0.0.1",
        "ftp://a",
        "https://",
        "https://u:p@issuer.example",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(IssuerUnavailable, match="expected an https address"):
        check_address(url, "the issuer")
