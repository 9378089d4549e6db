"""Admits requests: finds the principal of each, and the namespace that it acts in."""

from corvo.endpoint import PlanContext
from corvo.model.access import ANONYMOUS, Principal
from corvo.model.namespaces import DEFAULT
from gateway.http.messages import Request

CONTEXTS_MAX = 10_000  # of namespaces, made as they are needed


class Guard:
    def __init__(self, context: PlanContext) -> None:
        self._contexts = {DEFAULT: context}

    async def admit(self, request: Request) -> None:
        """Set the request's principal and context, or refuse it."""
        principal = self._find(request)
        request.principal = principal
        request.context = self.context(principal)

    def _find(self, request: Request) -> Principal:
        return ANONYMOUS

    def context(self, principal: Principal) -> PlanContext:
        """Of the principal's namespace: ids of others do not exist there."""
        context = self._contexts.get(principal.namespace)
        if context is None:
            if len(self._contexts) >= CONTEXTS_MAX:
                self._contexts = {DEFAULT: self._contexts[DEFAULT]}
            context = self._contexts[principal.namespace] = self._contexts[DEFAULT].within(principal.namespace)
        return context
