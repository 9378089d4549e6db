"""Principals that a trusted proxy vouches for by headers, as for SAML.

The headers count only on connections from an address that a setting lists. From any other address they are ignored, not
refused: everybody can write headers, and nobody should learn from an answer that these have a meaning here.
"""

from collections.abc import Iterable
from ipaddress import ip_address

import structlog

from corvo.model.access import Principal
from corvo.model.limits import NAMESPACE
from corvo.model.namespaces import DEFAULT
from corvo.runtime.addresses import Network
from gateway.access.access_copy import AccessCopy

SUBJECT = b"x-corvo-saml-subject"
ROLE = b"x-corvo-saml-role"
ROLES = b"x-corvo-saml-roles"
NAMESPACE_HEADER = b"x-corvo-saml-namespace"
_ALL = (SUBJECT, ROLE, ROLES, NAMESPACE_HEADER)
ROLES_MAX = 32

log = structlog.get_logger()


class ProxyHeaders:
    def __init__(self, registry: AccessCopy, trusted: tuple[Network, ...]) -> None:
        self._registry = registry
        self._trusted = trusted

    def principal(self, headers: Iterable[tuple[bytes, bytes]], client: str) -> Principal | None:
        """None: the request must show another credential."""
        if not self._trusted or not self._registry.sso.saml_enabled:
            return None
        given = [(name, value.decode("latin-1")) for name, value in headers if name in _ALL]
        if not given or not self._is_trusted(client):
            return None
        said = dict(given)
        if len(said) < len(given):
            log.warning("a proxy sent a sign-on header twice", client=client)
            return None
        return self._principal(said)

    def _is_trusted(self, client: str) -> bool:
        try:
            address = ip_address(client.partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address.version == network.version and address in network for network in self._trusted)

    def _principal(self, said: dict[bytes, str]) -> Principal | None:
        subject = said.get(SUBJECT, "")
        namespace = said.get(NAMESPACE_HEADER, DEFAULT) or DEFAULT
        if not 1 <= len(subject) <= 256 or not subject.isprintable():
            return None
        if not NAMESPACE.fullmatch(namespace) or self._registry.namespace(namespace) is None:
            return None
        named = [said.get(ROLE, ""), *said.get(ROLES, "").split(",")]
        roles = tuple(dict.fromkeys(filter(None, (role.strip() for role in named))))[:ROLES_MAX]
        return Principal(
            name=subject,
            kind="proxy",
            roles=roles,
            permissions=self._registry.permissions_of(roles),
            namespace=namespace,
            home=namespace,
        )
