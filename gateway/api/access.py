"""Endpoints about the principal of a request, which the gateway answers itself."""

from corvo.endpoint import Answer
from corvo.model.granting import is_cluster_admin
from corvo.queries.access.principal import AuthStatus, principal_view
from gateway.access.registry import Registry
from gateway.http.messages import Request
from gateway.routes import Handler


class AccessEndpoints:
    def __init__(self, registry: Registry, is_password_set: bool = False) -> None:
        self._registry = registry
        self._is_password_set = is_password_set

    def by_name(self) -> dict[str, Handler]:
        return {"auth_status": self._status, "whoami": self._whoami}

    async def _status(self, body: None, request: Request) -> Answer:
        registry = self._registry
        return Answer(200, AuthStatus(self._is_password_set, registry.has_keys, registry.sso.provider))

    async def _whoami(self, body: None, request: Request) -> Answer:
        return Answer(200, principal_view(request.principal, is_cluster_admin(request.principal)))
