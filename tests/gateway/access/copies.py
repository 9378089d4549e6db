"""A registry of the tests: the records that a test wants, without a shard."""

from collections.abc import Iterable

from corvo.model.access import ROLES, Permission
from corvo.model.access_records import NamespaceRecord, SsoSettings


class FixedCopy:
    def __init__(self, sso: SsoSettings, namespaces: Iterable[str] = ("default",)) -> None:
        self.version = 1
        self.sso = sso
        self._namespaces = {name: NamespaceRecord(name) for name in namespaces}

    def change(self, sso: SsoSettings) -> None:
        self.version += 1
        self.sso = sso

    def permissions_of(self, roles: Iterable[str]) -> tuple[Permission, ...]:
        return tuple(permission for role in roles for permission in ROLES.get(role, ()))

    def namespace(self, name: str) -> NamespaceRecord | None:
        return self._namespaces.get(name)
