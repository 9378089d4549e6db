"""Tokens of a real issuer become principals."""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from corvo.model.access_records import SsoSettings
from corvo.model.errors import Refusal
from gateway.access.sign_on import SignOn
from tests.gateway.access.copies import FixedCopy
from tests.gateway.access.issuer_server import CLIENT, TestIssuer, a_test_issuer


@pytest.fixture
def issuer() -> Iterator[TestIssuer]:
    with a_test_issuer() as made:
        yield made


def settings(issuer: TestIssuer, **mappings: str) -> SsoSettings:
    return SsoSettings(
        provider="oidc",
        oidc_issuer_url=issuer.url,
        oidc_client_id=CLIENT,
        group_role_mappings=mappings or {"ops": "operator", "leads": "admin"},
    )


def a_sign_on(issuer: TestIssuer) -> tuple[SignOn, FixedCopy]:
    copy = FixedCopy(settings(issuer), ("default", "acme"))
    return SignOn(copy), copy


def test_groups_give_roles(issuer: TestIssuer) -> None:
    sign_on, _ = a_sign_on(issuer)

    person = asyncio.run(sign_on.principal(issuer.token(groups=["ops", "unknown", "leads"], corvo_namespace="acme")))

    assert (person.name, person.kind, person.namespace) == ("ada@example.com", "person", "acme")
    assert person.roles == ("operator", "admin")
    assert person.may("queues:pause")
    assert not person.is_cluster_wide, "a person of a tenant must not manage the installation"


def test_a_person_without_a_role_may_do_nothing(issuer: TestIssuer) -> None:
    sign_on, _ = a_sign_on(issuer)

    person = asyncio.run(sign_on.principal(issuer.token(groups=[])))

    assert (person.roles, person.permissions) == ((), ())


def test_a_verified_token_is_remembered_until_anything_changes(issuer: TestIssuer) -> None:
    async def play() -> None:
        sign_on, copy = a_sign_on(issuer)
        token = issuer.token()
        assert sign_on.recall(token) is None
        first = await sign_on.principal(token)
        assert sign_on.recall(token) is first
        copy.change(settings(issuer, ops="readonly"))
        assert sign_on.recall(token) is None
        assert (await sign_on.principal(token)).roles == ("readonly",)

    asyncio.run(play())


def test_a_token_ends_while_it_is_remembered(issuer: TestIssuer) -> None:
    async def play() -> None:
        now = [0.0]
        sign_on = SignOn(FixedCopy(settings(issuer)), clock_s=lambda: now[0])
        token = issuer.token(exp=1_000, iat=None)
        await sign_on.principal(token)
        now[0] = 2_000.0
        with pytest.raises(Refusal) as refused:
            await sign_on.principal(token)
        assert refused.value.code == "UNAUTHORIZED"

    asyncio.run(play())


def test_a_bad_token_and_an_unknown_namespace_are_refused_alike(issuer: TestIssuer) -> None:
    sign_on, _ = a_sign_on(issuer)
    messages = set()
    for token in (issuer.token(aud="other"), issuer.token(corvo_namespace="other"), "ey.ey.ey", "x"):
        with pytest.raises(Refusal) as refused:
            asyncio.run(SignOn(FixedCopy(settings(issuer))).principal(token))
        assert refused.value.code == "UNAUTHORIZED"
        messages.add(refused.value.message)
    assert len(messages) == 1
    assert sign_on.is_on


def test_s47_no_issuer_means_503_not_in(issuer: TestIssuer) -> None:
    issuer.is_down = True
    sign_on, _ = a_sign_on(issuer)

    with pytest.raises(Refusal) as refused:
        asyncio.run(sign_on.principal(issuer.token()))

    assert (refused.value.code, refused.value.status) == ("SIGN_ON_UNAVAILABLE", 503)


def test_without_settings_no_token_counts(issuer: TestIssuer) -> None:
    copy = FixedCopy(msgspec.structs.replace(settings(issuer), provider=""))

    with pytest.raises(Refusal, match="unknown"):
        asyncio.run(SignOn(copy).principal(issuer.token()))


def test_another_issuer_in_the_settings_is_asked_from_then_on(issuer: TestIssuer) -> None:
    async def play() -> None:
        sign_on, copy = a_sign_on(issuer)
        await sign_on.principal(issuer.token())
        with a_test_issuer() as other:
            copy.change(settings(other))
            with pytest.raises(Refusal):
                await sign_on.principal(issuer.token())
            assert (await sign_on.principal(other.token())).name == "ada@example.com"

    asyncio.run(play())
