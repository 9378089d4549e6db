"""What sign-on and proxies need of the registry."""

from collections.abc import Iterable
from typing import Protocol

from corvo.model.access import Permission
from corvo.model.access_records import NamespaceRecord, SsoSettings


class AccessCopy(Protocol):
    @property
    def version(self) -> int: ...

    @property
    def sso(self) -> SsoSettings: ...

    def permissions_of(self, roles: Iterable[str]) -> tuple[Permission, ...]: ...

    def namespace(self, name: str) -> NamespaceRecord | None: ...
