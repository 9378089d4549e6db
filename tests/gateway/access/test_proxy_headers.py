"""Headers of a trusted proxy, and of everybody else."""

import pytest

from corvo.model.access_records import SsoSettings
from corvo.runtime.addresses import parse_networks
from gateway.access.proxy_headers import ProxyHeaders
from tests.gateway.access.copies import FixedCopy

Headers = list[tuple[bytes, bytes]]
GOOD: Headers = [
    (b"host", b"corvo.example"),
    (b"x-corvo-saml-subject", b"ada@example.com"),
    (b"x-corvo-saml-role", b"operator"),
    (b"x-corvo-saml-roles", b"readonly, operator,"),
    (b"x-corvo-saml-namespace", b"acme"),
]


def a_reader(networks: str = "10.0.0.0/8,::1", is_on: bool = True) -> ProxyHeaders:
    copy = FixedCopy(SsoSettings(provider="saml", saml_enabled=is_on), ("default", "acme"))
    return ProxyHeaders(copy, parse_networks(networks))


@pytest.mark.parametrize("client", ["10.1.2.3", "::1", "::ffff:10.1.2.3"])
def test_a_trusted_proxy_vouches_for_a_person(client: str) -> None:
    person = a_reader().principal(GOOD, client)

    assert person is not None
    assert (person.name, person.kind, person.namespace) == ("ada@example.com", "proxy", "acme")
    assert person.roles == ("operator", "readonly")
    assert person.may("queues:pause")
    assert not person.is_cluster_wide


@pytest.mark.parametrize("client", ["11.0.0.1", "::2", "", "nonsense", "::ffff:11.0.0.1"])
def test_headers_of_anybody_else_mean_nothing(client: str) -> None:
    assert a_reader().principal(GOOD, client) is None


def test_they_mean_nothing_unless_the_settings_say_so() -> None:
    assert a_reader(is_on=False).principal(GOOD, "10.1.2.3") is None
    assert a_reader(networks="").principal(GOOD, "10.1.2.3") is None


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"corvo.example")],
        [(b"x-corvo-saml-role", b"admin")],
        [(b"x-corvo-saml-subject", b"")],
        [(b"x-corvo-saml-subject", b"a" * 257)],
        [(b"x-corvo-saml-subject", b"a\x1bb")],
        [(b"x-corvo-saml-subject", b"ada"), (b"x-corvo-saml-subject", b"eve")],
        [(b"x-corvo-saml-subject", b"ada"), (b"x-corvo-saml-namespace", b"unknown")],
        [(b"x-corvo-saml-subject", b"ada"), (b"x-corvo-saml-namespace", b"../x")],
    ],
)
def test_incomplete_or_doubled_headers_vouch_for_nobody(headers: Headers) -> None:
    assert a_reader().principal(headers, "10.1.2.3") is None


def test_without_a_role_a_person_may_do_nothing() -> None:
    person = a_reader().principal([(b"x-corvo-saml-subject", b"ada")], "10.1.2.3")

    assert person is not None and person.permissions == ()


@pytest.mark.parametrize("text", ["10.0.0.0/33", "example.com", "10.0.0.1/8"])
def test_a_wrong_network_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="is no network"):
        parse_networks(text)
